package kates_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func labelled(name, in string) *kates.ConfigMap {
	cm := &kates.ConfigMap{Data: map[string]string{"k": "v"}}
	cm.Name, cm.Namespace = name, "ns"
	cm.Labels = map[string]string{"in": in}
	return cm
}

// inBubble runs a subtest in a bubble of synctest.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// soon is a context for what comes at once, in a bubble, or never.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// next waits for a snapshot that meets a condition. It fails as soon as the watch is in trouble,
// which signals nothing.
func next[S any](t *testing.T, s *kates.Snapshots[S], into *S, wanted func() bool) {
	t.Helper()
	deadline, look := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	for {
		ready := s.Ready() == nil // read this first: the snapshot may be older otherwise
		_, err := s.Update(t.Context(), into)
		require.NoError(t, err)
		if ready && wanted() {
			return
		}
		select {
		case <-s.Changed():
		case <-look.C:
			require.Empty(t, trouble(s.Status()), "the snapshot is not as wanted")
		case <-deadline:
			require.Fail(t, "the snapshot is not as wanted")
		}
	}
}

// trouble is what is wrong with queries of a watch. That one is not complete yet is no trouble.
func trouble(status kates.Status) (errs []string) {
	for _, q := range status.Queries {
		if q.Error != "" {
			errs = append(errs, q.Name+": "+q.Error)
		}
	}
	return errs
}

func TestMetadataFieldsOfEveryFormWorkOnAClientThatCannotAskForThem(t *testing.T) {
	c := katestest.NewClient(t, labelled("listed", "yes"))
	type briefs struct {
		Slice    []*kates.PartialObjectMetadata                         `kates:"configmaps"`
		Values   []metav1.PartialObjectMetadata                         `kates:"cm"`
		ByName   map[types.NamespacedName]*metav1.PartialObjectMetadata `kates:"ConfigMap"`
		ByString map[string]*metav1.PartialObjectMetadata               `kates:"ConfigMap"`
		Whole    []*kates.ConfigMap
	}
	s, err := kates.Watch[briefs](t.Context(), c)
	require.NoError(t, err)
	var snap briefs
	next(t, s, &snap, func() bool { return true })
	require.NoError(t, c.Create(t.Context(), labelled("written", "yes"), nil))
	_, err = s.Update(t.Context(), &snap)
	require.NoError(t, err)
	require.Len(t, snap.Slice, 2)
	assert.Len(t, snap.Values, 2)
	assert.Contains(t, snap.ByName, types.NamespacedName{Namespace: "ns", Name: "written"})
	assert.Contains(t, snap.ByString, "ns/written")
	assert.Equal(t, "v", snap.Whole[1].Data["k"])
	for _, o := range snap.Slice {
		assert.Equal(t, "v1/ConfigMap", o.APIVersion+"/"+o.Kind)
	}
	status := s.Status()
	for _, q := range status.Queries[:4] {
		assert.Equal(t, "metadata of whole objects", q.Form, q.Name)
	}
	assert.Empty(t, status.Queries[4].Form)
	assert.Contains(t, status.String(), "configmaps (metadata of whole objects)")
}

func TestMetadataOnlyOfAFieldOfWholeObjectsIsAnError(t *testing.T) {
	c := katestest.NewClient(t)
	type whole struct{ ConfigMaps []*kates.ConfigMap }
	_, err := kates.Watch[whole](t.Context(), c, kates.Query{Name: "ConfigMaps", MetadataOnly: true})
	require.ErrorContains(t, err, "field ConfigMaps")
	require.ErrorContains(t, err, "PartialObjectMetadata")
}

func TestTransformsAndSignalsOnTheFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewClient(t, labelled("a", "yes"))
		acc, err := c.With(kates.WithTransform(kates.DropFields("data")), kates.WithInterval(0)).Watch(t.Context(),
			kates.Query{Name: "Own", Kind: "cm", Signal: kates.LabelsChanged})
		require.NoError(t, err)
		synctest.Wait() // a first list may signal twice: when it is there, and when that is known
		<-acc.Changed()
		var snap struct{ Own []*kates.ConfigMap }
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		require.Len(t, snap.Own, 1)
		assert.Empty(t, snap.Own[0].Data)
		var got *kates.ConfigMap
		require.NoError(t, c.Patch(t.Context(), labelled("a", ""), kates.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`), &got))
		assert.Equal(t, "v", got.Data["k"], "what the caller gets is what the server answered")
		synctest.Wait()
		assert.Empty(t, acc.Changed(), "annotations are not worth a signal")
		changed, err := acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.True(t, changed)
		require.NoError(t, c.Patch(t.Context(), labelled("a", ""), kates.MergePatchType, []byte(`{"metadata":{"labels":{"in":"no"}}}`), nil))
		synctest.Wait() // the watch may overtake the answer, and then signals
		assert.Len(t, acc.Changed(), 1)
	})
}

func TestDropFieldsTakesPathsAndLeavesTheRest(t *testing.T) {
	u := &kates.Unstructured{Object: map[string]any{
		"data":     map[string]any{"k": "v", "a.b": "x"},
		"spec":     map[string]any{"keep": "k", "drop": map[string]any{}},
		"metadata": map[string]any{"name": "n", "annotations": map[string]any{"example.com/x": "1", "y": "2"}},
	}}
	drop := kates.DropFields(`data.a\.b`, "spec.drop", "nothing.there", "data.k.deeper", `metadata.annotations.example\.com/x`)
	require.NoError(t, drop.Apply(u))
	want := map[string]any{
		"data": map[string]any{"k": "v"}, "spec": map[string]any{"keep": "k"},
		"metadata": map[string]any{"name": "n", "annotations": map[string]any{"y": "2"}},
	}
	assert.Equal(t, want, u.Object)

	short := &kates.PartialObjectMetadata{}
	short.Name, short.Kind, short.Annotations = "n", "K", map[string]string{"example.com/x": "1", "y": "2"}
	short.Labels = map[string]string{"a": "b"}
	require.NoError(t, kates.Transforms(drop, kates.DropFields("metadata.labels"), kates.DropManagedFields).Apply(short))
	assert.Equal(t, map[string]string{"y": "2"}, short.Annotations)
	assert.Empty(t, short.Labels)
	assert.Equal(t, "K n", short.Kind+" "+short.Name)
	for _, bad := range []string{"", "a..b", ".a"} {
		assert.ErrorContains(t, kates.DropFields("data", bad).Apply(u), "not a path")
	}
	assert.Contains(t, u.Object, "data", "a bad path drops nothing")
}

func TestSignalsSayWhatHasChanged(t *testing.T) {
	object := func(generation int64, labels, annotations string) kates.Object {
		o := &kates.PartialObjectMetadata{}
		o.Generation = generation
		o.Labels, o.Annotations = map[string]string{"l": labels}, map[string]string{"a": annotations}
		return o
	}
	leaving := object(1, "", "")
	now := metav1.Now()
	leaving.SetDeletionTimestamp(&now)
	base := object(1, "", "")
	both := kates.AnySignal(kates.LabelsChanged, kates.AnnotationsChanged)
	for name, c := range map[string]struct {
		old, current                            kates.Object
		generation, labels, annotations, either bool
	}{
		"status alone":    {base, object(1, "", ""), false, false, false, false},
		"spec":            {base, object(2, "", ""), true, false, false, false},
		"labels":          {base, object(1, "x", ""), false, true, false, true},
		"annotations":     {base, object(1, "", "x"), false, false, true, true},
		"deletion begins": {base, leaving, true, false, false, false},
		"no generation":   {object(0, "", ""), object(0, "", ""), true, false, false, false},
		"new":             {nil, base, true, true, true, true},
		"gone":            {base, nil, true, true, true, true},
	} {
		worth := func(s kates.Signal) bool {
			yes, err := s.Worth(c.old, c.current)
			require.NoError(t, err)
			return yes
		}
		assert.Equal(t, c.generation, worth(kates.GenerationChanged), name)
		assert.Equal(t, c.labels, worth(kates.LabelsChanged), name)
		assert.Equal(t, c.annotations, worth(kates.AnnotationsChanged), name)
		assert.Equal(t, c.either, worth(both), name)
	}
}

// unable is a server that cannot shorten objects: it answers 406, or sends them whole.
type unable struct {
	ignores bool
	refused atomic.Int32
}

func (u *unable) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(code int, body string) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
	if short := strings.Contains(r.Header.Get("Accept"), "as=PartialObject"); short && !u.ignores {
		u.refused.Add(1)
		return answer(http.StatusNotAcceptable, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotAcceptable","code":406}`)
	}
	if r.URL.Query().Get("watch") == "true" {
		resp, _ := answer(http.StatusOK, "")
		resp.Body = &open{r.Context()}
		return resp, nil
	}
	return answer(http.StatusOK, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"x","namespace":"ns","uid":"u","resourceVersion":"5"},"data":{"k":"v"}}]}`)
}

// open is the body of a watch that sends nothing.
type open struct{ ctx context.Context }

func (o *open) Read([]byte) (int, error) { <-o.ctx.Done(); return 0, io.EOF }
func (o *open) Close() error             { return nil }

func TestFromAServerThatCannotShortenObjectsTheyAreTakenWhole(t *testing.T) {
	for name, server := range map[string]*unable{"refuses": {}, "ignores": {ignores: true}} {
		t.Run(name, func(t *testing.T) {
			mapper, err := katestest.NewMapper()
			require.NoError(t, err)
			c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: "http://server.invalid", Transport: server},
				kates.WithRESTMapper(mapper), kates.Tuning{Lists: kates.PagedLists})
			require.NoError(t, err)
			defer c.Close()
			type briefs struct {
				CMs []*kates.PartialObjectMetadata `kates:"configmaps"`
			}
			s, err := kates.Watch[briefs](t.Context(), c)
			require.NoError(t, err)
			var snap briefs
			next(t, s, &snap, func() bool { return len(snap.CMs) == 1 })
			assert.Equal(t, "v1/ConfigMap x", snap.CMs[0].APIVersion+"/"+snap.CMs[0].Kind+" "+snap.CMs[0].Name)
			assert.Equal(t, "metadata of whole objects", s.Status().Queries[0].Form)
			assert.LessOrEqual(t, server.refused.Load(), int32(1), "it is asked once")
		})
	}
}
