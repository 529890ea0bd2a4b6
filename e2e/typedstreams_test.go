package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
)

// typedGadget is a Go type for a test's custom kind. The server accepts any size.
type typedGadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size"`
	Spec              struct {
		Color string `json:"color"`
	} `json:"spec"`
}

func (g *typedGadget) DeepCopyObject() runtime.Object {
	c := *g
	c.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &c
}

type typedGadgets struct {
	Gadgets []*typedGadget
	Deltas  []*kates.Delta
	Invalid []kates.Invalid
}

func (g *gadget) scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: g.group, Version: "v1", Kind: "Gadget"}, &typedGadget{})
	return s
}

// sized returns a gadget whose size may be no number.
func (g *gadget) sized(ns, name string, size any) *kates.Unstructured {
	o := g.object("v1", ns, name, "red")
	o.Object["size"] = size
	return o
}

func TestG8ACustomObjectWithAFieldOfTheWrongTypeIsLeftOutAndHeals(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string]kates.Option{"paged": kates.Tuning{Lists: kates.PagedLists, PageSize: 1}, "streamed": kates.Tuning{Lists: kates.StreamedLists}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, ctx := namespace(t), t.Context()
			g := newGadget(t, ns)
			g.install("v1")
			other, c := newWire(t).client(t), newWire(t).client(t, kates.WithScheme(g.scheme()), lists)
			for name, size := range map[string]any{"a": int64(1), "bad": "big", "z": int64(2)} {
				require.NoError(t, other.Create(ctx, g.sized(ns, name, size), nil))
			}
			s, err := kates.Watch[typedGadgets](ctx, c, kates.Query{Name: "Gadgets", Namespace: ns})
			require.NoError(t, err)
			var snap typedGadgets
			awaitSnap(t, s, &snap, func(v *typedGadgets) bool { return s.Ready() == nil })
			require.Len(t, snap.Gadgets, 2)
			assert.Equal(t, 2, snap.Gadgets[1].Size)
			assert.Equal(t, g.group+"/v1 Gadget", snap.Gadgets[0].APIVersion+" "+snap.Gadgets[0].Kind)
			assert.Equal(t, "typed from json", s.Status().Queries[0].Form)
			require.Len(t, snap.Invalid, 1)
			assert.Equal(t, "bad", snap.Invalid[0].Object.GetName())
			assert.NotEmpty(t, snap.Invalid[0].Object.GetUID())
			require.ErrorContains(t, snap.Invalid[0].Err, "size")

			patch := func(c *kates.Client, name, size string) {
				require.NoError(t, c.Patch(ctx, g.sized(ns, name, nil), kates.MergePatchType, []byte(`{"size":`+size+`}`), nil))
			}
			patch(other, "bad", "3")
			awaitSnap(t, s, &snap, func(v *typedGadgets) bool { return len(v.Gadgets) == 3 && len(v.Invalid) == 0 })
			patch(other, "z", `"huge"`)
			awaitSnap(t, s, &snap, func(v *typedGadgets) bool { return len(v.Gadgets) == 2 && len(v.Invalid) == 1 })
			now := func(shown, invalid int) {
				t.Helper()
				_, err := s.Update(ctx, &snap)
				require.NoError(t, err)
				assert.Len(t, snap.Gadgets, shown)
				assert.Len(t, snap.Invalid, invalid)
			}
			patch(c, "a", `"tiny"`)
			now(1, 2)
			patch(c, "a", `4`)
			now(2, 1)
			require.NoError(t, c.Delete(ctx, g.sized(ns, "z", nil), nil))
			now(2, 0)
			require.NoError(t, c.Sync(ctx))
			now(2, 0)
			assert.Zero(t, s.Status().Queries[0].Restarts, "the watch went on")
		})
	}
}

func TestG4OwnWritesOfACustomKindAreInATypedFieldAtOnceThoughTheWatchIsLate(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	g := newGadget(t, ns)
	g.install("v1")
	c := w.client(t, kates.WithScheme(g.scheme()))
	for name, q := range map[string]kates.Query{"by label": {LabelSelector: "in=yes"}, "by field": {FieldSelector: "spec.color=yes"}} {
		q.Name, q.Namespace = "Gadgets", ns
		s, err := kates.Watch[typedGadgets](ctx, c, q)
		require.NoError(t, err)
		var snap typedGadgets
		awaitSnap(t, s, &snap, func(*typedGadgets) bool { return s.Ready() == nil })
		w.set("gadgets", late)
		shows := func(color string) {
			t.Helper()
			_, err := s.Update(ctx, &snap)
			require.NoError(t, err)
			if color == "" {
				require.Empty(t, snap.Gadgets, name)
				return
			}
			require.Len(t, snap.Gadgets, 1, name)
			require.Equal(t, color, snap.Gadgets[0].Spec.Color)
			require.Equal(t, "Gadget", snap.Gadgets[0].Kind)
			require.Nil(t, snap.Gadgets[0].ManagedFields)
		}
		o := g.sized(ns, "x", int64(1))
		require.NoError(t, c.Create(ctx, o, nil))
		shows("")
		for _, in := range []string{"yes", "no", "yes"} {
			patch := `{"metadata":{"labels":{"in":"` + in + `"}},"spec":{"color":"` + in + `"}}`
			require.NoError(t, c.Patch(ctx, o, kates.MergePatchType, []byte(patch), nil))
			shows(map[string]string{"yes": "yes"}[in])
		}
		shown := snap.Gadgets[0]
		w.set("gadgets", 0) // a Sync that waits for a stalled watch would wait for minutes
		w.drained(t, "gadgets")
		require.NoError(t, c.Sync(ctx))
		changed, err := s.Update(ctx, &snap)
		require.NoError(t, err)
		assert.False(t, changed, "G5: the late watch has nothing new to say")
		assert.Same(t, shown, snap.Gadgets[0])
		assert.Zero(t, s.Status().Queries[0].Pending, "G6")
		w.set("gadgets", late)
		require.NoError(t, c.Delete(ctx, o, nil))
		shows("")
		w.set("gadgets", 0)
		s.Close()
	}
}

func TestATypedQueryOfABuiltInKindSpeaksProtobufAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string]kates.Option{"paged": kates.Tuning{Lists: kates.PagedLists, PageSize: 2}, "streamed": kates.Tuning{Lists: kates.StreamedLists}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, ctx, e := namespace(t), t.Context(), &ear{resource: "secrets"}
			other := newWire(t).client(t)
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				require.NoError(t, other.Create(ctx, secret(ns, name, "yes"), nil))
			}
			c := e.client(t, serverOf(t), lists)
			type view struct{ Secrets []*kates.Secret }
			s, err := kates.Watch[view](ctx, c, kates.Query{Name: "Secrets", Namespace: ns, FieldSelector: "type=Opaque"})
			require.NoError(t, err)
			var snap view
			awaitSnap(t, s, &snap, func(v *view) bool { return len(v.Secrets) == 5 })
			require.NoError(t, other.Create(ctx, secret(ns, "watched", "yes"), nil))
			awaitSnap(t, s, &snap, func(v *view) bool { return len(v.Secrets) == 6 })
			require.NoError(t, c.Sync(ctx))
			assert.Equal(t, "typed from protobuf", s.Status().Queries[0].Form)
			for _, o := range snap.Secrets {
				assert.Equal(t, "v1 Secret", o.APIVersion+" "+o.Kind)
				assert.Nil(t, o.ManagedFields)
				assert.Equal(t, secrecy.Mark("confidential"), string(o.Data["k"]))
			}
			accepts, _, got := e.heardAll()
			for _, accept := range accepts {
				assert.Equal(t, "application/vnd.kubernetes.protobuf,application/json", accept)
			}
			assert.Contains(t, got, "k8s\x00")
			assert.NotContains(t, got, `"kind"`)
			var kept *kates.Secret
			mine := snap.Secrets[0].DeepCopy()
			mine.Labels["more"] = "yes"
			require.NoError(t, c.Update(ctx, mine, &kept))
			assert.NotEmpty(t, kept.ManagedFields, "an update without them keeps them on the server")
		})
	}
}

// typedHost is a Go type that knows a part of its kind.
type typedHost struct{ oldHost }

func (h *typedHost) DeepCopyObject() runtime.Object {
	c := *h
	c.ObjectMeta = *h.ObjectMeta.DeepCopy()
	c.Spec.Extra.Parts = slices.Clone(h.Spec.Extra.Parts)
	return &c
}

func TestModifyStartsFromATypedWatchAndReadsNothingThatItDoesNotChange(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(hosts.GroupVersion().WithKind("Host"), &typedHost{})
	c := w.client(t, kates.WithNamespace(ns), kates.WithScheme(scheme))
	u := kates.NewUnstructured("Host", "getambassador.io/v3alpha1")
	u.SetName("x")
	parts := []any{map[string]any{"name": "a", "size": int64(1), "new": "of a"}, map[string]any{"name": "b", "new": "of b"}}
	u.Object["spec"] = map[string]any{"hostname": "red", "tlsSecret": map[string]any{"name": "s"}, "extra": map[string]any{"new": "extra", "parts": parts}}
	require.NoError(t, c.Create(ctx, u, nil))
	s, err := kates.Watch[struct{ Hosts []*typedHost }](ctx, c, kates.Query{Name: "Hosts", Namespace: ns})
	require.NoError(t, err)
	var snap struct{ Hosts []*typedHost }
	awaitSnap(t, s, &snap, func(*struct{ Hosts []*typedHost }) bool { return len(snap.Hosts) == 1 })
	w.set("hosts", late)
	requests := countRequests(w, "hosts")
	modify := func(change func(h *typedHost), want map[string]int) {
		t.Helper()
		got, err := kates.Modify(ctx, c, u, func(h *typedHost) error { change(h); return nil })
		require.NoError(t, err)
		_, err = s.Update(ctx, &snap)
		require.NoError(t, err)
		assert.Equal(t, got.Spec, snap.Hosts[0].Spec)
		assert.Equal(t, want, requests())
	}
	modify(func(h *typedHost) { h.Labels = map[string]string{"l": "m"} }, map[string]int{"PATCH": 1})
	modify(func(h *typedHost) { h.Spec.Hostname += "er"; h.ManagedFields = nil }, map[string]int{"PATCH": 1})
	modify(func(*typedHost) {}, map[string]int{})
	modify(func(h *typedHost) { h.Spec.Extra.Parts[0].Size++ }, map[string]int{"PATCH": 1})
	_, err = kates.Modify(ctx, c, u, func(u *kates.Unstructured) error {
		assert.Contains(t, u.Object["spec"], "tlsSecret", "who sees all, starts from all")
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"GET": 1}, requests())

	_, err = foreign(t).Resource(hosts).Namespace(ns).Patch(ctx, "x", kates.MergePatchType, []byte(`{"spec":{"hostname":"blue"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	modify(func(h *typedHost) { h.Spec.Hostname += "ish" }, map[string]int{"GET": 1, "PATCH": 2})
	got, err := foreign(t).Resource(hosts).Namespace(ns).Get(ctx, "x", metav1.GetOptions{})
	require.NoError(t, err)
	parts[0].(map[string]any)["size"] = int64(2)
	assert.Equal(t, map[string]any{"hostname": "blueish", "tlsSecret": map[string]any{"name": "s"}, "extra": map[string]any{"new": "extra", "parts": parts}}, got.Object["spec"])
	w.set("hosts", 0)
}
