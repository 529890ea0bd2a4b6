package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

func TestG4OneNameCreatedDeletedAndCreatedAgainWithTheWatchStalledAnywhere(t *testing.T) {
	t.Parallel()
	for name, selector := range selectors {
		// before each of the three writes: let the watch catch up, or not
		for stalls := range 1 << 3 {
			for others := range 1 << 3 { // each write is ours, or somebody else's
				t.Run(fmt.Sprintf("%s, caught up %03b, foreign %03b", name, stalls, others), func(t *testing.T) {
					t.Parallel()
					interleave(t, selector, stalls, others)
				})
			}
		}
	}
}

// interleave creates, deletes and creates an object, and reads a snapshot after each own write.
func interleave(t *testing.T, selector string, caughtUp, others int) {
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns, LabelSelector: selector}, "configmaps")
	d := foreign(t).Resource(configMaps).Namespace(ns)
	var made []types.UID
	for i := range 3 {
		if caughtUp>>i&1 == 1 {
			w.set("configmaps", 0)
			require.NoError(t, c.Sync(ctx))
			w.set("configmaps", late)
		}
		theirs, o := others>>i&1 == 1, object(configMaps, ns, "x", nil)
		var err error
		switch {
		case i == 1 && theirs:
			err = d.Delete(ctx, "x", metav1.DeleteOptions{})
		case i == 1:
			err = c.Delete(ctx, o, nil)
		case theirs:
			o, err = d.Create(ctx, o, metav1.CreateOptions{})
		default:
			err = c.Create(ctx, o, &o)
		}
		require.NoError(t, err)
		if i != 1 {
			made = append(made, o.GetUID())
		}
		shown := r.look("x")
		switch {
		case theirs && shown != nil: // from the watch, or from our own earlier write
			assert.Contains(t, made, shown.GetUID())
		case theirs:
		case i == 1:
			assert.Nil(t, shown, "G4: deleted by us")
		default:
			require.NotNil(t, shown, "G4: created by us")
			assert.Equal(t, o.GetUID(), shown.GetUID(), "G4")
		}
	}
	w.set("configmaps", 0)
	require.NoError(t, c.Sync(ctx))
	require.NotNil(t, r.look("x"))
	assert.Equal(t, made[1], r.look("x").GetUID(), "G6")
	r.settled(w, "configmaps")
}

func TestG4GetAndListWhileOwnWritesArePendingChangeNoSnapshot(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	d := foreign(t).Resource(configMaps).Namespace(ns)
	for _, name := range []string{"theirs", "deleted"} {
		_, err := d.Create(ctx, object(configMaps, ns, name, nil), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	require.NoError(t, c.Create(ctx, object(configMaps, ns, "ours", nil), nil))
	require.NoError(t, c.Delete(ctx, object(configMaps, ns, "deleted", nil), nil))
	ours := r.look("ours")
	// newer than what the watch shows, and than our own write
	for _, name := range []string{"ours", "theirs"} {
		_, err := d.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"by":"them"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	var got *kates.Unstructured
	for _, name := range []string{"ours", "theirs", "deleted"} {
		err := c.Get(ctx, object(configMaps, ns, name, nil), &got)
		assert.Equal(t, name == "deleted", kates.IsNotFound(err))
	}
	assert.Equal(t, "them", dataOf(got, "by"))
	var all []*kates.Unstructured
	require.NoError(t, c.List(ctx, kates.Query{Kind: "cm", Namespace: ns}, &all))
	assert.Len(t, all, 2)
	changed, err := r.acc.Update(ctx, &r.snap)
	require.NoError(t, err)
	assert.False(t, changed)
	assert.Same(t, ours, r.look("ours"))
	assert.Nil(t, r.look("deleted"))
	assert.Nil(t, dataOf(r.look("theirs"), "by"))
	w.set("configmaps", 0)
	r.swift("their writes", func() bool {
		return dataOf(r.look("ours"), "by") == "them" && dataOf(r.look("theirs"), "by") == "them"
	})
	r.settled(w, "configmaps")
}

func TestG4AFastAndASlowReaderOfOneClientBothSeeItsWrites(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	q := kates.Query{Kind: "cm", Namespace: ns}
	fast := lateReader(t, w, c, q, "configmaps")
	w.set("configmaps", 0)
	slow := lateReader(t, w, c.With(kates.WithInterval(0)), q, "configmaps")
	x := object(configMaps, ns, "x", nil)
	require.NoError(t, c.Create(ctx, x, nil))
	for n := range 50 {
		patch := fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n)
		require.NoError(t, c.Patch(ctx, x, kates.MergePatchType, patch, nil))
		assert.Equal(t, fmt.Sprint(n), dataOf(fast.look("x"), "n"))
	}
	assert.Equal(t, "49", dataOf(slow.look("x"), "n"), "what another reader has taken, this one has too")
	assert.Same(t, fast.look("x"), slow.look("x"))
	require.NoError(t, c.Delete(ctx, x, nil))
	assert.Nil(t, fast.look("x"))
	assert.Nil(t, slow.look("x"))
	fast.settled(w, "configmaps")
	slow.settled(w, "configmaps")
}

func TestG4ObservedWritesOfABareDynamicClientAreOwnOnes(t *testing.T) {
	t.Parallel()
	for name, selector := range selectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ns, ctx := newWire(t), namespace(t), t.Context()
			c := w.client(t)
			r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns, LabelSelector: selector}, "configmaps")
			d := c.DynamicInterface().Resource(configMaps).Namespace(ns)
			o := object(configMaps, ns, "x", nil)
			o.SetFinalizers([]string{"example.com/f"})
			made, err := d.Create(ctx, o, metav1.CreateOptions{})
			require.NoError(t, err)
			assert.Nil(t, r.look("x"), "its watch is late")
			require.NoError(t, c.Observe(t.Context(), made))
			assert.Equal(t, version(made), version(r.look("x")))
			patched, err := d.Patch(ctx, "x", types.MergePatchType, []byte(`{"data":{"n":"1"}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			require.NoError(t, c.Observe(t.Context(), patched))
			require.NoError(t, c.Observe(t.Context(), made), "an older one takes nothing back")
			assert.Equal(t, version(patched), version(r.look("x")))
			require.NoError(t, d.Delete(ctx, "x", metav1.DeleteOptions{}))
			terminating, err := d.Get(ctx, "x", metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, c.Observe(t.Context(), terminating))
			assert.NotNil(t, r.look("x").GetDeletionTimestamp())
			gone, err := d.Patch(ctx, "x", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			require.NoError(t, c.Observe(t.Context(), gone))
			assert.Nil(t, r.look("x"), "its last finalizer is gone")
			r.settled(w, "configmaps")
		})
	}
}

func TestG4AWriteThroughEitherFormOfTheStoredResourceIsShownInTheOther(t *testing.T) {
	t.Parallel()
	scale := func(version string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "autoscaling", Version: version, Kind: "HorizontalPodAutoscaler"}
	}
	events := func(group string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Event"}
	}
	for name, f := range map[string]struct {
		kind, resource string
		written, shown schema.GroupVersionKind
		content        map[string]any
	}{
		"an autoscaler, v2 shown in v1": {"horizontalpodautoscalers.v1.autoscaling", "horizontalpodautoscalers", scale("v2"), scale("v1"),
			map[string]any{"spec": map[string]any{"maxReplicas": int64(3), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}},
		"an event of events.k8s.io shown in the core group": {"events.v1.", "events", events("events.k8s.io"), events(""),
			map[string]any{"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "example.com/c", "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ns, ctx := newWire(t), namespace(t), t.Context()
			c := w.client(t, kates.WithNamespace(ns))
			r := lateReader(t, w, c, kates.Query{Kind: f.kind, Namespace: ns}, f.resource)
			o := &kates.Unstructured{Object: f.content}
			o.SetGroupVersionKind(f.written)
			o.SetName("x")
			if f.resource == "events" {
				o.Object["regarding"] = map[string]any{"kind": "Pod", "name": "p", "namespace": ns}
			}
			for range 2 { // once more, with another UID
				require.NoError(t, c.Create(ctx, o, nil))
				require.NotNil(t, r.look("x"))
				assert.Equal(t, f.shown, r.look("x").GroupVersionKind())
				require.NoError(t, c.Patch(ctx, o, kates.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), nil))
				assert.Equal(t, map[string]string{"a": "b"}, r.look("x").GetLabels())
				require.NoError(t, c.Delete(ctx, o, nil))
				assert.Nil(t, r.look("x"))
			}
			r.settled(w, f.resource)
		})
	}
}
