package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	hosts      = schema.GroupVersionResource{Group: "getambassador.io", Version: "v3alpha1", Resource: "hosts"}
	kindsOf    = map[schema.GroupVersionResource]schema.GroupVersionKind{
		pods:       {Version: "v1", Kind: "Pod"},
		configMaps: {Version: "v1", Kind: "ConfigMap"},
		secrets:    {Version: "v1", Kind: "Secret"},
		hosts:      {Group: "getambassador.io", Version: "v3alpha1", Kind: "Host"},
	}
)

func object(gvr schema.GroupVersionResource, ns, name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kindsOf[gvr])
	u.SetNamespace(ns)
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

// fill creates many objects, quickly.
func fill(t *testing.T, ns string, n int, kinds ...schema.GroupVersionResource) {
	t.Helper()
	d := foreign(t)
	type job struct {
		gvr schema.GroupVersionResource
		i   int
	}
	jobs := make(chan job)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for j := range jobs {
				_, err := d.Resource(j.gvr).Namespace(ns).Create(context.Background(),
					object(j.gvr, ns, fmt.Sprintf("o-%04d", j.i), nil), metav1.CreateOptions{})
				assert.NoError(t, err)
			}
		})
	}
	for _, gvr := range kinds {
		for i := range n {
			jobs <- job{gvr, i}
		}
	}
	close(jobs)
	wg.Wait()
}

// awaitSnap waits until a snapshot satisfies cond.
func awaitSnap[S any](t *testing.T, s *kates.Snapshots[S], into *S, cond func(*S) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		_, err := s.Update(t.Context(), into)
		require.NoError(t, err)
		if cond(into) {
			return
		}
		select {
		case <-s.Changed():
		case <-deadline:
			require.Fail(t, "no such snapshot", "%+v\n%s", *into, s.Status())
		}
	}
}

type large struct {
	ConfigMaps []*kates.ConfigMap
	Secrets    map[types.NamespacedName]*kates.Secret
	Hosts      []map[string]any `kates:"hosts.getambassador.io"`
	Empty      []*kates.ServiceAccount
}

func TestG1TheFirstSnapshotHasAllOfThreeLargeKindsAndAnEmptyOne(t *testing.T) {
	t.Parallel()
	const n = 2500
	ns := namespace(t)
	fill(t, ns, n, configMaps, secrets, hosts)
	for name, options := range map[string][]kates.Option{
		"streamed": {kates.Tuning{Lists: kates.StreamedLists}},
		"paged":    {kates.Tuning{Lists: kates.PagedLists, PageSize: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			w, g := newWire(t), newGate(t)
			w.hookBefore(g.hold(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/hosts") }))
			c := w.client(t, options...)
			s, err := kates.Watch[large](t.Context(), c,
				kates.Query{Name: "ConfigMaps", Namespace: ns}, kates.Query{Name: "Secrets", Namespace: ns},
				kates.Query{Name: "Hosts", Namespace: ns},
				kates.Query{Name: "Empty", Namespace: ns, LabelSelector: "none=such"})
			require.NoError(t, err)
			<-g.came // the list of hosts is held, all others are complete
			require.Eventually(t, func() bool { return synced(s.Status()) == 3 }, patience, 10*time.Millisecond)
			assert.Empty(t, s.Changed(), "no signal before it is complete")
			var snap large
			changed, err := s.Update(t.Context(), &snap)
			require.NoError(t, err)
			require.False(t, changed, "not before it is complete")
			require.Nil(t, snap.ConfigMaps)
			g.release()
			<-s.Changed()
			changed, err = s.Update(t.Context(), &snap)
			require.NoError(t, err)
			require.True(t, changed)
			assert.Len(t, snap.Secrets, n)
			assert.Len(t, snap.Hosts, n)
			assert.GreaterOrEqual(t, len(snap.ConfigMaps), n)
			assert.NotNil(t, snap.Empty)
			assert.Empty(t, snap.Empty)
			streams := w.seen("secrets", func(r request) bool { return r.query.Get("sendInitialEvents") == "true" })
			pages := w.seen("secrets", func(r request) bool { return r.query.Get("continue") != "" })
			lists := w.seen("secrets", func(r request) bool { return !r.watch })
			if name == "streamed" {
				assert.Equal(t, 1, streams)
				assert.Zero(t, lists)
			} else {
				assert.Zero(t, streams)
				assert.Equal(t, 4, pages, "continue is seen on the wire")
				assert.Equal(t, 5, lists)
			}
		})
	}
}

// synced returns how many queries are complete.
func synced(st kates.Status) (n int) {
	for _, q := range st.Queries {
		if q.State == kates.StateSynced {
			n++
		}
	}
	return n
}

func TestG2AReaderThatSleepsMissesNothingAndReadsAllInOneUpdate(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	fill(t, ns, 100, hosts)
	type snapshot struct {
		Hosts  []*kates.Unstructured `kates:"hosts.getambassador.io"`
		Deltas []*kates.Delta
	}
	c := newWire(t).client(t)
	s, err := kates.Watch[snapshot](t.Context(), c, kates.Query{Name: "Hosts", Namespace: ns})
	require.NoError(t, err)
	var snap snapshot
	awaitSnap(t, s, &snap, func(s *snapshot) bool { return len(s.Hosts) == 100 })
	d := foreign(t).Resource(hosts).Namespace(ns)
	wake := time.After(3 * time.Second) // the reader is busy until then
	for i := range 1000 {
		_, err := d.Patch(t.Context(), fmt.Sprintf("o-%04d", i%100), types.MergePatchType,
			[]byte(fmt.Sprintf(`{"spec":{"hostname":"h%d"}}`, i)), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	<-wake
	require.NoError(t, c.Sync(t.Context())) // everything has been delivered
	changed, err := s.Update(t.Context(), &snap)
	require.NoError(t, err)
	require.True(t, changed)
	assert.Len(t, snap.Deltas, 100, "a thousand changes of a hundred objects")
	for i, h := range snap.Hosts {
		name, _, _ := unstructured.NestedString(h.Object, "spec", "hostname")
		assert.Equal(t, fmt.Sprintf("h%d", 900+i), name)
	}
}
