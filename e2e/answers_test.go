package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// swift waits until the reader's watch, which has no delay, has brought what is wanted.
func (r *reader) swift(what string, wanted func() bool) {
	r.t.Helper()
	for !wanted() {
		_, open := <-r.acc.Changed()
		require.True(r.t, open, what)
		r.look("")
	}
}

// promptReader returns a reader whose watch has no delay.
func promptReader(t *testing.T, w *wire, c *kates.Client, q kates.Query, resource string) *reader {
	t.Helper()
	r := lateReader(t, w, c, q, resource)
	w.set(resource, 0)
	return r
}

func version(u *kates.Unstructured) string {
	if u == nil {
		return ""
	}
	return u.GetResourceVersion()
}

// selectors are for queries. With a selector the library has to ask what a DELETED event means.
var selectors = map[string]string{"without a selector": "", "with a selector": "!none"}

func TestG5AForeignWriteThatOvertakesTheAnswerToOursIsNotTakenBack(t *testing.T) {
	t.Parallel()
	for name, selector := range selectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ns, ctx := newWire(t), namespace(t), t.Context()
			c := w.client(t, kates.WithNamespace(ns))
			r := promptReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns, LabelSelector: selector}, "configmaps")
			require.NoError(t, c.Create(ctx, object(configMaps, ns, "x", nil), nil))
			g := newGate(t)
			w.hookAfter(g.hold(writing(http.MethodPatch, "configmaps")))
			done := make(chan error, 1)
			go func() {
				done <- c.Patch(ctx, object(configMaps, ns, "x", nil), kates.MergePatchType, []byte(`{"data":{"by":"us"}}`), nil)
			}()
			<-g.came
			r.swift("our write, by the watch", func() bool { return dataOf(r.look("x"), "by") == "us" })
			theirs, err := foreign(t).Resource(configMaps).Namespace(ns).Patch(ctx, "x", types.MergePatchType, []byte(`{"data":{"by":"them"}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			r.swift("their write", func() bool { return dataOf(r.look("x"), "by") == "them" })
			g.release()
			require.NoError(t, <-done)
			assert.Equal(t, theirs.GetResourceVersion(), version(r.look("x")))
			r.settled(w, "configmaps")
		})
	}
}

func dataOf(u *kates.Unstructured, key string) any {
	if u == nil {
		return nil
	}
	data, _ := u.Object["data"].(map[string]any)
	return data[key]
}

func TestG5TheAnswerToADeletionHidesNoObjectThatWasMadeAfterIt(t *testing.T) {
	t.Parallel()
	for name, selector := range selectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ns, ctx := newWire(t), namespace(t), t.Context()
			c := w.client(t, kates.WithNamespace(ns))
			r := promptReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns, LabelSelector: selector}, "configmaps")
			require.NoError(t, c.Create(ctx, object(configMaps, ns, "x", nil), nil))
			g := newGate(t)
			w.hookAfter(g.hold(writing(http.MethodDelete, "configmaps")))
			done := make(chan error, 1)
			go func() { done <- c.Delete(ctx, object(configMaps, ns, "x", nil), nil) }()
			<-g.came
			again, err := foreign(t).Resource(configMaps).Namespace(ns).Create(ctx, object(configMaps, ns, "x", nil), metav1.CreateOptions{})
			require.NoError(t, err)
			r.swift("the object made after", func() bool { return version(r.look("x")) == again.GetResourceVersion() })
			g.release()
			require.NoError(t, <-done)
			require.NotNil(t, r.look("x"))
			assert.Equal(t, again.GetUID(), r.look("x").GetUID())
			r.settled(w, "configmaps")
		})
	}
}

func TestG4AWriteWhoseAnswerIsLostHidesAndInventsNothingAndTheWatchTells(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t, kates.WithNamespace(ns))
	require.NoError(t, c.Create(ctx, object(configMaps, ns, "old", nil), nil))
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	before := fingerprint(r.snap.Objects)
	w.hookAfter(func(*http.Request) error { return errLost })
	require.ErrorIs(t, c.Create(ctx, object(configMaps, ns, "new", nil), nil), errLost)
	require.ErrorIs(t, c.Patch(ctx, object(configMaps, ns, "old", nil), kates.MergePatchType, []byte(`{"data":{"a":"b"}}`), nil), errLost)
	require.ErrorIs(t, c.Delete(ctx, object(configMaps, ns, "old", nil), nil), errLost)
	w.hookAfter(nil)
	r.look("")
	assert.Equal(t, before, fingerprint(r.snap.Objects))
	assert.Zero(t, r.acc.Status().Queries[0].Pending)
	w.set("configmaps", 0)
	r.swift("what the server made of it", func() bool { return r.look("new") != nil && r.look("old") == nil })
	r.settled(w, "configmaps")
}

func TestG4AWriteThatTheServerCannotBeAskedAboutIsUnsettledUntilTheWatchTells(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t, kates.WithNamespace(ns))
	h := object(hosts, ns, "h", nil)
	require.NoError(t, c.Create(ctx, h, nil))
	w.hookBefore(noOpenAPI)
	r := lateReader(t, w, c, kates.Query{Kind: "hosts", Namespace: ns, FieldSelector: "spec.hostname=yes"}, "hosts")
	w.hookBefore(func(req *http.Request) error {
		if strings.Contains(req.URL.Query().Get("fieldSelector"), "metadata.name") {
			return errLost
		}
		return nil
	})
	patch := []byte(`{"spec":{"hostname":"yes"}}`)
	require.NoError(t, c.Patch(ctx, h, kates.MergePatchType, patch, nil), "the write has succeeded")
	r.look("h")
	assert.Equal(t, 1, r.acc.Status().Queries[0].Unsettled)
	w.hookBefore(nil)
	w.set("hosts", 0)
	r.swift("the watch", func() bool { return r.look("h") != nil })
	assert.Zero(t, r.acc.Status().Queries[0].Unsettled)
	r.settled(w, "hosts")
}
