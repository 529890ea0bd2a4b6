package kates_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// lister is a server of config maps that tells the truth, or what a test wants in place of it. Its
// connections are in memory, so that it lives in a bubble of synctest.
type lister struct {
	network *katestest.Network
	secure  bool // TLS and HTTP/2
	server  *httptest.Server

	mu      sync.Mutex
	names   []string
	version int
	lie     http.HandlerFunc // in place of a list
	cut     chan struct{}    // closed when the open watches expire
	lists   int              // requests
}

const (
	listerHost = "lister.test"
	// smallObjects is the bound of these tests, so that what never ends is soon over.
	smallObjects = 64 << 10
)

func newLister(t *testing.T, secure bool) *lister {
	t.Helper()
	s := &lister{
		network: katestest.NewNetwork(t), secure: secure,
		names: []string{"a", "b", "c"}, version: 100, cut: make(chan struct{}),
	}
	listener, err := s.network.Listen(listerHost + ":80")
	require.NoError(t, err)
	s.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}, EnableHTTP2: secure}
	if secure {
		s.server.StartTLS()
	} else {
		s.server.Start()
	}
	t.Cleanup(func() { s.tell(nil); s.network.Reset(); s.server.Close() })
	return s
}

func (s *lister) client(t *testing.T, options ...kates.Option) *kates.Client {
	t.Helper()
	mapper, err := katestest.NewMapper()
	require.NoError(t, err)
	config := &rest.Config{Host: "http://" + listerHost + ":80", Dial: s.network.DialContext}
	if s.secure {
		config.Host, config.TLSClientConfig = "https://"+listerHost+":80", rest.TLSClientConfig{Insecure: true}
	}
	c, err := kates.NewClientFromRESTConfig(config, append([]kates.Option{
		kates.WithRESTMapper(mapper), kates.WithInterval(0), kates.WithLogger(slog.New(slog.DiscardHandler)),
		kates.Tuning{MaxObjectBytes: smallObjects},
	}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// tell changes what lists say (nil: the truth), and makes the client list again.
func (s *lister) tell(lie http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie = lie
	close(s.cut)
	s.cut = make(chan struct{})
}

// add makes an object.
func (s *lister) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names, s.version = append(s.names, name), s.version+1
}

// asked returns how many lists were asked for since the last call.
func (s *lister) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.lists
	s.lists = 0
	return n
}

func (s *lister) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/namespaces/ns/configmaps") {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	s.lists++
	lie := s.lie
	s.mu.Unlock()
	if lie != nil {
		lie(w, r)
		return
	}
	s.list(w, r)
}

func (s *lister) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("sendInitialEvents") != "" {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		return
	}
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	_ = http.NewResponseController(w).Flush()
	select {
	case <-cut:
		fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	case <-r.Context().Done():
	}
}

// list tells the truth, in the form that was asked for.
func (s *lister) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if accept := r.Header.Get("Accept"); strings.Contains(accept, "protobuf") && !strings.Contains(accept, "as=") {
		list := &corev1.ConfigMapList{}
		list.APIVersion, list.Kind, list.ResourceVersion = "v1", "ConfigMapList", fmt.Sprint(s.version)
		for _, name := range s.names {
			var item corev1.ConfigMap
			if err := json.Unmarshal([]byte(strings.NewReplacer("$GV", "v1", "$KIND", "ConfigMap").Replace(itemOf(name))), &item); err != nil {
				panic(err)
			}
			list.Items = append(list.Items, item)
		}
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, w); err != nil {
			panic(err)
		}
		return
	}
	items := make([]string, len(s.names))
	for i, name := range s.names {
		items[i] = itemOf(name)
	}
	fmt.Fprint(w, inForm(r, fmt.Sprintf(`{"kind":"$LIST","apiVersion":"$GV","metadata":{"resourceVersion":"%d"},"items":[%s]}`, s.version, strings.Join(items, ","))))
}

// itemOf is an object of that name.
func itemOf(name string, more ...string) string {
	return `{"kind":"$KIND","apiVersion":"$GV","metadata":{"namespace":"ns","name":"` + name + `","uid":"u-` + name + `","resourceVersion":"50"}` + strings.Join(more, "") + `}`
}

// listOf is a list in which all is right but perhaps the items.
func listOf(items ...string) string {
	return `{"kind":"$LIST","apiVersion":"$GV","metadata":{"resourceVersion":"$RV"},"items":[` + strings.Join(items, ",") + `]}`
}

// inForm fills in the kind that a request asks for.
func inForm(r *http.Request, text string) string {
	gv, kind := "v1", "ConfigMap"
	if strings.Contains(r.Header.Get("Accept"), "as=") {
		gv, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	return strings.NewReplacer("$LIST", kind+"List", "$KIND", kind, "$GV", gv, "$RV", "900").Replace(text)
}

// says answers with a text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, inForm(r, text))
	}
}

// badList is what a server may answer in place of a list.
type badList struct {
	name   string
	lie    http.HandlerFunc
	error  string // what the status says, as a regular expression
	form   string // of the client, "" for each
	later  bool   // it is bad only after a good list
	secure bool   // over TLS and HTTP/2
	slow   bool   // fewer tries than others
	with   []kates.Option
}

type (
	badlyTyped   struct{ ConfigMaps []*kates.ConfigMap }
	badlyUntyped struct{ ConfigMaps []*kates.Unstructured }
	badlyShort   struct {
		ConfigMaps []*kates.PartialObjectMetadata
	}
)

func listedNames[T interface{ GetName() string }](objects []T) (all []string) {
	for _, o := range objects {
		all = append(all, o.GetName())
	}
	return all
}

func TestG5G8NoBadListIsShownOrTakesAnythingBackAndTheStatusSaysWhatIsWrong(t *testing.T) {
	forms := map[string]func(*testing.T, badList){
		"typed": func(t *testing.T, b badList) {
			bears(t, b, func(s *badlyTyped) []string { return listedNames(s.ConfigMaps) })
		},
		"untyped": func(t *testing.T, b badList) {
			bears(t, b, func(s *badlyUntyped) []string { return listedNames(s.ConfigMaps) })
		},
		"metadata": func(t *testing.T, b badList) {
			bears(t, b, func(s *badlyShort) []string { return listedNames(s.ConfigMaps) })
		},
	}
	for _, row := range rounds.Some(slices.Concat(badBodies, badObjects, badVersions, badPages, badTransfers)) {
		t.Run(row.name, func(t *testing.T) {
			for form, try := range forms {
				if row.form == "" || row.form == form {
					t.Run(form, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { try(t, row) })
					})
				}
			}
		})
	}
}

// bears lists from a server that answers badly at first, then tells the truth, answers badly
// again, and tells the truth in the end.
func bears[S any](t *testing.T, b badList, names func(*S) []string) {
	s := newLister(t, b.secure)
	c := s.client(t, b.with...)
	if !b.later {
		s.tell(b.lie)
	}
	snapshots, err := kates.Watch[S](t.Context(), c, kates.Query{Name: "ConfigMaps", Kind: "ConfigMap.v1.", Namespace: "ns"})
	require.NoError(t, err)
	var snap S
	look := func(changed bool, want ...string) {
		t.Helper()
		got, err := snapshots.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Equal(t, changed, got)
		assert.Equal(t, want, names(&snap))
	}
	const long = 2 * time.Minute
	fails := func() {
		t.Helper()
		s.asked()
		time.Sleep(long)
		status := snapshots.Status().Queries[0]
		assert.Regexp(t, b.error, status.Error)
		assert.Equal(t, kates.StateRetrying, status.State)
		tries := s.asked()
		assert.True(t, tries >= 2 || b.slow, "it is tried again: %d", tries)
		assert.True(t, tries < 100 || b.slow, "with growing pauses: %d", tries)
	}
	if !b.later {
		fails()
		look(false)
		assert.Error(t, snapshots.Ready())
		s.tell(nil)
	}
	time.Sleep(10 * long)
	require.NoError(t, snapshots.Ready())
	look(true, "a", "b", "c")
	s.tell(b.lie)
	fails()
	look(false, "a", "b", "c")
	assert.NoError(t, snapshots.Ready())
	s.add("d")
	s.tell(nil)
	time.Sleep(10 * long)
	look(true, "a", "b", "c", "d")
	assert.Empty(t, snapshots.Status().Queries[0].Error)
}
