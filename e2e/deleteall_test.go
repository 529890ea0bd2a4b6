package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// makeConfigMaps makes n objects as another program. Every tenth has a finalizer.
func makeConfigMaps(t *testing.T, ns string, n int) {
	t.Helper()
	d := foreign(t).Resource(configMaps).Namespace(ns)
	var writers sync.WaitGroup
	for worker := range 16 {
		writers.Go(func() {
			for i := worker; i < n; i += 16 {
				o := object(configMaps, ns, fmt.Sprintf("cm-%04d", i), nil)
				if i%10 == 0 {
					o.SetFinalizers([]string{"example.com/kept"})
				}
				_, err := d.Create(t.Context(), o, metav1.CreateOptions{})
				assert.NoError(t, err)
			}
		})
	}
	writers.Wait()
}

func TestG4DeleteAllOf1200ObjectsLeavesThoseWithFinalizersTerminatingAtOnce(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	makeConfigMaps(t, ns, 1200)
	r := readerOf(t, c, kates.Query{Kind: "cm", Namespace: ns})
	selected := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns, LabelSelector: "!none"}, "configmaps")
	q := kates.Query{Kind: "cm", Namespace: ns}
	require.NoError(t, c.DeleteAll(ctx, q, kates.DryRun()))
	r.look("")
	require.Len(t, r.snap.Objects, 1200, "a dry run leaves no trace")

	require.NoError(t, c.DeleteAll(ctx, q))
	for _, r := range []*reader{r, selected} {
		r.look("")
		require.Len(t, r.snap.Objects, 120)
		for _, o := range r.snap.Objects {
			require.NotNil(t, o.GetDeletionTimestamp(), o.GetName())
		}
	}
	pages := w.seen("configmaps", func(r request) bool { return r.query.Get("limit") == "500" && r.query.Get("continue") != "" })
	assert.GreaterOrEqual(t, pages, 4, "two lists of three pages each")
	require.NoError(t, c.DeleteAll(ctx, q), "what is terminating may be deleted again")
	r.settled(w, "configmaps")
	selected.settled(w, "configmaps")
}

func TestG4DeleteAllIsDoneWithObjectsThatOthersDeletedOrReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	d := foreign(t).Resource(configMaps).Namespace(ns)
	for _, name := range []string{"gone", "plain", "replaced"} {
		_, err := d.Create(ctx, object(configMaps, ns, name, nil), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	old := r.look("replaced")
	w.hookBefore(func(q *http.Request) error {
		name := q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]
		if q.Method != http.MethodDelete || name == "plain" {
			return nil
		}
		err := d.Delete(ctx, name, metav1.DeleteOptions{})
		if err == nil && name == "replaced" {
			_, err = d.Create(ctx, object(configMaps, ns, name, nil), metav1.CreateOptions{})
		}
		return err
	})
	require.NoError(t, c.DeleteAll(ctx, kates.Query{Kind: "cm", Namespace: ns}))
	w.hookBefore(nil)
	assert.Nil(t, r.look("gone"), "though this client did not delete it, and the watch is late")
	assert.Nil(t, r.look("plain"))
	replaced := r.look("replaced")
	require.NotNil(t, replaced)
	assert.NotEqual(t, old.GetUID(), replaced.GetUID(), "what somebody put in its place stays")
	r.settled(w, "configmaps")
}

func TestDeleteAllOfANamespaceThatIsTerminatingIsNoError(t *testing.T) {
	t.Parallel()
	ns, ctx := namespace(t), t.Context()
	c := newWire(t).client(t)
	q := kates.Query{Kind: "ns", FieldSelector: "metadata.name=" + ns}
	require.NoError(t, c.DeleteAll(ctx, q))
	require.NoError(t, c.DeleteAll(ctx, q), "again")
}
