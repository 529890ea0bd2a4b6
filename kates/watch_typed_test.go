package kates_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/framer"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// broken is an object whose data does not decode.
type broken struct{ *kates.ConfigMap }

// wireServer answers lists with its objects, and one watch with what the test sends, in one
// encoding.
type wireServer struct {
	protobuf bool
	refuse   int    // it answers requests that accept protobuf with this status
	instead  string // the body of a list, if not empty
	single   string // the body of an object that is read
	objects  []any  // *kates.ConfigMap or broken
	events   chan []byte
	// one answers requests for one object, with the object or an error.
	one func(r *http.Request) any

	mu      sync.Mutex
	accepts []string
	singles []string // methods of requests for one object, and LIST of those with labels
}

// seen returns the requests for one object since the last call, and the lists by labels.
func (s *wireServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.singles
	s.singles = nil
	return was
}

func (s *wireServer) client(t *testing.T, options ...kates.Option) *kates.Client {
	t.Helper()
	mapper, err := katestest.NewMapper()
	require.NoError(t, err)
	s.events = make(chan []byte, 10)
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: "http://server.invalid", Transport: s},
		append([]kates.Option{kates.WithRESTMapper(mapper), kates.WithInterval(0)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func (s *wireServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.accepts...)
}

// WrappedRoundTripper ends the search for connections to close.
func (s *wireServer) WrappedRoundTripper() http.RoundTripper { return http.DefaultTransport }

func (s *wireServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/configmaps") {
		s.mu.Lock()
		s.accepts = append(s.accepts, r.Header.Get("Accept"))
		s.mu.Unlock()
	}
	resp := &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}}}
	single := strings.Contains(r.URL.Path, "/configmaps/") && s.one != nil
	if method := map[bool]string{true: r.Method, false: "LIST"}[single]; single || r.URL.Query().Get("labelSelector") != "" {
		s.mu.Lock()
		s.singles = append(s.singles, method)
		s.mu.Unlock()
	}
	switch {
	case single:
		answer := s.one(r)
		if refusal, ok := answer.(*apierrors.StatusError); ok {
			refusal.ErrStatus.Kind, refusal.ErrStatus.APIVersion = "Status", "v1"
			resp.StatusCode, answer = int(refusal.ErrStatus.Code), refusal.ErrStatus
		}
		resp.Body = io.NopCloser(bytes.NewReader(must(json.Marshal(answer))))
	case s.refuse != 0 && strings.Contains(r.Header.Get("Accept"), "protobuf"):
		resp.StatusCode = s.refuse
		resp.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":406}`))
	case r.URL.Query().Get("watch") == "true":
		from, to := io.Pipe()
		go func() {
			for {
				select {
				case event := <-s.events:
					_, _ = to.Write(event)
				case <-r.Context().Done():
					_ = to.CloseWithError(io.EOF)
					return
				}
			}
		}()
		resp.Body = from
	case s.single != "" && !strings.HasSuffix(r.URL.Path, "/configmaps"):
		resp.Body = io.NopCloser(strings.NewReader(s.single))
	case s.instead != "":
		resp.Body = io.NopCloser(strings.NewReader(s.instead))
	default:
		resp.Body = io.NopCloser(bytes.NewReader(s.list()))
	}
	return resp, nil
}

// field returns a field of bytes of a protobuf message.
func field(number byte, value []byte) []byte {
	head := []byte{number<<3 | 2}
	for n := len(value); ; n >>= 7 {
		if n < 0x80 {
			return append(append(head, byte(n)), value...)
		}
		head = append(head, byte(n)|0x80)
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// encode returns one object as an item or, enveloped, as the object of an event.
func (s *wireServer) encode(o any, enveloped bool) []byte {
	b, isBroken := o.(broken)
	cm, ok := o.(*kates.ConfigMap)
	if !ok {
		cm = b.ConfigMap
	}
	if !s.protobuf {
		raw := must(json.Marshal(cm))
		if isBroken {
			raw = bytes.Replace(raw, []byte(`"data":{`), []byte(`"data":"SENSITIVE","old":{`), 1)
		}
		return raw
	}
	raw := must(cm.Marshal())
	if isBroken {
		raw = append(raw, field(2, []byte{0x0a, 0x7f})...)
	}
	if enveloped {
		raw = append([]byte("k8s\x00"), field(2, raw)...)
	}
	return raw
}

func (s *wireServer) list() []byte {
	if s.protobuf {
		raw := field(1, field(2, []byte("7")))
		for _, o := range s.objects {
			raw = append(raw, field(2, s.encode(o, false))...)
		}
		kind := field(1, append(field(1, []byte("v1")), field(2, []byte("ConfigMapList"))...))
		return append(append([]byte("k8s\x00"), kind...), field(2, raw)...)
	}
	items := []json.RawMessage{}
	for _, o := range s.objects {
		items = append(items, s.encode(o, false))
	}
	return must(json.Marshal(map[string]any{"kind": "ConfigMapList", "apiVersion": "v1", "items": items, "metadata": map[string]any{"resourceVersion": "7"}}))
}

func (s *wireServer) send(kind string, o any) {
	event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: s.encode(o, true)}}
	if !s.protobuf {
		s.events <- must(json.Marshal(event))
		return
	}
	var out bytes.Buffer
	_, err := framer.NewLengthDelimitedFrameWriter(&out).Write(must(event.Marshal()))
	if err != nil {
		panic(err)
	}
	s.events <- out.Bytes()
}

func versioned(name, version string) *kates.ConfigMap {
	cm := labelled(name, "yes")
	cm.UID, cm.ResourceVersion = types.UID("uid-"+name), version
	cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	return cm
}

type typedMaps struct {
	ConfigMaps []*kates.ConfigMap
	Deltas     []*kates.Delta
	Invalid    []kates.Invalid
}

func namesOf(maps []*kates.ConfigMap) (all []string) {
	for _, cm := range maps {
		all = append(all, cm.Name+"@"+cm.ResourceVersion)
	}
	return all
}

func TestG8AnObjectThatDoesNotDecodeOnTheWireIsLeftOutByItselfAndHeals(t *testing.T) {
	for form, protobuf := range map[string]bool{"typed from protobuf": true, "typed from json": false} {
		t.Run(form, func(t *testing.T) {
			s := &wireServer{protobuf: protobuf, objects: []any{versioned("a", "5"), broken{versioned("bad", "6")}, versioned("z", "7")}}
			c := s.client(t)
			w, err := kates.Watch[typedMaps](t.Context(), c, kates.Query{Name: "ConfigMaps", LabelSelector: "in=yes"})
			require.NoError(t, err)
			var snap typedMaps
			next(t, w, &snap, func() bool { return true })
			assert.Equal(t, []string{"a@5", "z@7"}, namesOf(snap.ConfigMaps))
			assert.Equal(t, form, w.Status().Queries[0].Form)
			assert.Equal(t, 1, w.Status().Queries[0].Invalid)
			require.Len(t, snap.Invalid, 1)
			o := snap.Invalid[0].Object
			assert.Equal(t, "v1/ConfigMap ns/bad uid-bad 6", o.GetAPIVersion()+"/"+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()+" "+string(o.GetUID())+" "+o.GetResourceVersion())
			require.ErrorContains(t, snap.Invalid[0].Err, `convert ConfigMap "ns/bad" to *v1.ConfigMap`)

			reader, err := kates.NewLister[*kates.ConfigMap](t.Context(), c, kates.Query{LabelSelector: "in=yes"})
			require.NoError(t, err)
			defer reader.Close()
			_, err = reader.Get("ns", "bad")
			require.ErrorContains(t, err, "convert ConfigMap")
			all, err := reader.List("", nil)
			require.ErrorContains(t, err, "convert ConfigMap")
			assert.Equal(t, []string{"a@5", "z@7"}, namesOf(all))

			s.send("MODIFIED", versioned("bad", "8"))
			next(t, w, &snap, func() bool { return len(snap.Invalid) == 0 })
			assert.Equal(t, []string{"a@5", "bad@8", "z@7"}, namesOf(snap.ConfigMaps))
			s.send("MODIFIED", broken{versioned("a", "9")})
			next(t, w, &snap, func() bool { return len(snap.Invalid) == 1 })
			assert.Equal(t, []string{"bad@8", "z@7"}, namesOf(snap.ConfigMaps))
			require.Len(t, snap.Deltas, 1)
			assert.Equal(t, kates.ObjectDelete, snap.Deltas[0].DeltaType)
			s.send("DELETED", broken{versioned("a", "10")})
			next(t, w, &snap, func() bool { return len(snap.Invalid) == 0 })
			s.send("BOOKMARK", &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "12"}})
			s.send("ADDED", versioned("new", "13"))
			next(t, w, &snap, func() bool { return len(snap.ConfigMaps) == 3 })
			assert.Zero(t, w.Status().Queries[0].Restarts)
		})
	}
}

func TestTypedObjectsHaveTheirKindAndNoManagedFieldsUnlessTheyAreKept(t *testing.T) {
	for _, protobuf := range []bool{true, false} {
		for _, kept := range []bool{true, false} {
			s := &wireServer{protobuf: protobuf, objects: []any{versioned("listed", "5")}}
			options := []kates.Option{}
			if kept {
				options = append(options, kates.WithManagedFields())
			}
			w, err := kates.Watch[typedMaps](t.Context(), s.client(t, options...))
			require.NoError(t, err)
			var snap typedMaps
			next(t, w, &snap, func() bool { return true })
			s.send("ADDED", versioned("watched", "8"))
			next(t, w, &snap, func() bool { return len(snap.ConfigMaps) == 2 })
			assert.Equal(t, "v1/ConfigMap", snap.Deltas[0].APIVersion+"/"+snap.Deltas[0].Kind)
			for _, cm := range snap.ConfigMaps {
				assert.Equal(t, "v1/ConfigMap", cm.APIVersion+"/"+cm.Kind)
				assert.Equal(t, kept, cm.ManagedFields != nil)
				assert.Equal(t, map[string]string{"k": "v"}, cm.Data)
			}
		}
	}
}

func TestAServerThatRefusesProtobufIsAskedForJSON(t *testing.T) {
	for _, code := range []int{http.StatusNotAcceptable, http.StatusUnsupportedMediaType} {
		s := &wireServer{refuse: code, objects: []any{versioned("a", "5")}}
		w, err := kates.Watch[typedMaps](t.Context(), s.client(t))
		require.NoError(t, err)
		var snap typedMaps
		next(t, w, &snap, func() bool { return len(snap.ConfigMaps) == 1 })
		s.send("ADDED", versioned("b", "8"))
		next(t, w, &snap, func() bool { return len(snap.ConfigMaps) == 2 })
		assert.Equal(t, "typed from json", w.Status().Queries[0].Form)
		require.GreaterOrEqual(t, len(s.asked()), 3)
		assert.Equal(t, []string{"application/json", "application/json"}, s.asked()[1:3], "it is asked once")
		assert.Equal(t, "application/vnd.kubernetes.protobuf,application/json", s.asked()[0])
	}
}

func TestWhatIsNoListIsInTheStatus(t *testing.T) {
	for body, want := range map[string]string{
		"<html>":                  "cannot be read",
		`{"kind":"Pod"}`:          "a list that does not say what it is",
		`{"items":[{"spec":{}}]}`: "without a name",
		`{"items":[{"metadata":{"namespace":"ns","name":"x"}}`: "EOF",
	} {
		s := &wireServer{instead: body}
		w, err := kates.Watch[typedMaps](t.Context(), s.client(t))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return strings.Contains(w.Status().Queries[0].Error, want) }, time.Minute, 5*time.Millisecond, "%q: %v", body, w.Status())
		assert.Error(t, w.Ready())
	}
}

func TestTheChoiceIsPerQueryAndCanBeSwitchedOff(t *testing.T) {
	type both struct {
		Typed   []*kates.ConfigMap
		Untyped []*kates.Unstructured `kates:"cm"`
	}
	for _, untyped := range []bool{false, true} {
		s := &wireServer{objects: []any{versioned("a", "5")}}
		options := []kates.Option{kates.Tuning{Lists: kates.PagedLists}}
		if untyped {
			options = append(options, kates.Tuning{UntypedStreams: true})
		}
		w, err := kates.Watch[both](t.Context(), s.client(t, options...))
		require.NoError(t, err)
		var snap both
		next(t, w, &snap, func() bool { return len(snap.Typed) == 1 && len(snap.Untyped) == 1 })
		assert.Equal(t, !untyped, w.Status().Queries[0].Form == "typed from json", w.Status())
		assert.Empty(t, w.Status().Queries[1].Form)
		assert.NotEmpty(t, snap.Untyped[0].GetManagedFields(), "these stay whole")
	}
}

func TestATransformGetsTheGoType(t *testing.T) {
	s := &wireServer{protobuf: true, objects: []any{versioned("a", "5"), broken{versioned("bad", "6")}}}
	w, err := kates.Watch[typedMaps](t.Context(), s.client(t), kates.Query{Name: "ConfigMaps", Transform: kates.TransformOf(func(cm *kates.ConfigMap) error {
		cm.Data["k"] = "changed"
		return nil
	})})
	require.NoError(t, err)
	var snap typedMaps
	next(t, w, &snap, func() bool { return true })
	require.Len(t, snap.ConfigMaps, 1)
	assert.Equal(t, "changed", snap.ConfigMaps[0].Data["k"])
	require.Len(t, snap.Invalid, 1)
	assert.ErrorContains(t, snap.Invalid[0].Err, "convert ConfigMap", "not what the transform makes of nothing")
}

func TestAnErrorOfASecretOnTheWireTellsNothingOfIt(t *testing.T) {
	raw := `{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"name":"s","namespace":"ns","uid":"u","resourceVersion":"5"},"data":{"k":"SENSITIVE"}}],"metadata":{"resourceVersion":"7"}}`
	type secrets struct {
		Secrets []*kates.Secret
		Invalid []kates.Invalid
	}
	s := &wireServer{instead: raw}
	w, err := kates.Watch[secrets](t.Context(), s.client(t))
	require.NoError(t, err)
	var snap secrets
	next(t, w, &snap, func() bool { return len(snap.Invalid) == 1 })
	assert.NotContains(t, snap.Invalid[0].Err.Error(), "SENSITIVE")
	assert.Contains(t, snap.Invalid[0].Err.Error(), "withheld")
}

func TestAFieldOfATypeThatIsMadeAtRunTimeHasATypedStreamAsWell(t *testing.T) {
	s := &wireServer{objects: []any{versioned("a", "5")}}
	typ := reflect.StructOf([]reflect.StructField{{Name: "ConfigMaps", Type: reflect.TypeFor[[]*kates.ConfigMap]()}})
	w, err := s.client(t).WatchStruct(t.Context(), typ)
	require.NoError(t, err)
	defer w.Close()
	<-w.Changed()
	snap := reflect.New(typ)
	changed, err := w.Update(t.Context(), snap.Interface())
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, "a", snap.Elem().Field(0).Interface().([]*kates.ConfigMap)[0].Name)
	assert.Equal(t, "typed from json", w.Status().Queries[0].Form)
}

func TestG10ATransformWritesToNothingThatOtherObjectsShare(t *testing.T) {
	var objects []any
	for _, name := range []string{"a", "b", "c", "d", "e"} { // of equal labels and data
		objects = append(objects, versioned(name, "5"))
	}
	s := &wireServer{protobuf: true, objects: objects}
	w, err := kates.Watch[typedMaps](t.Context(), s.client(t), kates.Query{Name: "ConfigMaps", Transform: kates.TransformOf(func(cm *kates.ConfigMap) error {
		cm.Data["k"] = cm.Name
		return nil
	})})
	require.NoError(t, err)
	var snap typedMaps
	next(t, w, &snap, func() bool { return true })
	require.Len(t, snap.ConfigMaps, len(objects))
	for _, cm := range snap.ConfigMaps {
		assert.Equal(t, map[string]string{"k": cm.Name}, cm.Data)
	}
}
