package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// gadget is a custom kind of one test, with its own group and plural.
type gadget struct {
	t     *testing.T
	group string
	kind  string // as queries name it, without a version
	in    *rest.Config
}

func newGadget(t *testing.T, ns string) *gadget {
	g := &gadget{t: t, group: ns + ".kates.io", in: serverOf(t)}
	g.kind = "gadgets." + g.group
	return g
}

// others is another client of its cluster.
func (g *gadget) others() dynamic.Interface {
	g.t.Helper()
	d, err := dynamic.NewForConfig(g.in)
	require.NoError(g.t, err)
	return d
}

// install makes the kind with these versions and waits until it is served. The last version is
// the stored one.
func (g *gadget) install(versions ...string) {
	g.t.Helper()
	g.installAs("Namespaced", versions...)
}

func (g *gadget) installAs(scope string, versions ...string) {
	g.t.Helper()
	served := []any{}
	for i, v := range versions {
		served = append(served, gadgetVersion(v, i == len(versions)-1))
	}
	d := g.others().Resource(definitions)
	_, err := d.Create(g.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": g.kind},
		"spec": map[string]any{
			"group": g.group, "scope": scope, "versions": served,
			"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
		},
	}}, metav1.CreateOptions{})
	require.NoError(g.t, err)
	g.serving(versions[0], true)
}

// gadgetVersion returns a version of the kind, as the definition contains it.
func gadgetVersion(name string, stored bool) map[string]any {
	return map[string]any{
		"name": name, "served": true, "storage": stored,
		"selectableFields": []any{map[string]any{"jsonPath": ".spec.color"}},
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			"properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{"color": map[string]any{"type": "string"}}}},
		}},
	}
}

// serving waits until a version is served, or no longer served.
func (g *gadget) serving(version string, served bool) {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		_, err := g.others().Resource(g.resource(version)).List(g.t.Context(), metav1.ListOptions{})
		return served && err == nil || !served && kates.IsNotFound(err)
	}, patience, 50*time.Millisecond)
}

// edit changes the definition. It takes pairs of path and value.
func (g *gadget) edit(pathsAndValues ...any) {
	g.t.Helper()
	var patch []map[string]any
	for i := 0; i < len(pathsAndValues); i += 2 {
		patch = append(patch, map[string]any{"op": "add", "path": pathsAndValues[i], "value": pathsAndValues[i+1]})
	}
	data, err := json.Marshal(patch)
	require.NoError(g.t, err)
	_, err = g.others().Resource(definitions).Patch(context.Background(), g.kind, types.JSONPatchType, data, metav1.PatchOptions{})
	require.NoError(g.t, err)
}

// make creates objects of the kind as another program.
func (g *gadget) make(version, ns string, names ...string) {
	g.t.Helper()
	for _, name := range names {
		_, err := g.others().Resource(g.resource(version)).Namespace(ns).Create(context.Background(), g.object(version, ns, name, "red"), metav1.CreateOptions{})
		require.NoError(g.t, err)
	}
}

// remove deletes the kind, and its objects with it, and waits until it is gone.
func (g *gadget) remove() {
	g.t.Helper()
	d := g.others().Resource(definitions)
	require.NoError(g.t, d.Delete(context.Background(), g.kind, metav1.DeleteOptions{}))
	require.Eventually(g.t, func() bool {
		_, err := d.Get(context.Background(), g.kind, metav1.GetOptions{})
		return kates.IsNotFound(err)
	}, patience, 50*time.Millisecond)
}

func (g *gadget) resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: g.group, Version: version, Resource: "gadgets"}
}

func (g *gadget) object(version, ns, name, color string) *kates.Unstructured {
	u := kates.NewUnstructured("Gadget", g.group+"/"+version)
	u.SetNamespace(ns)
	u.SetName(name)
	u.SetLabels(map[string]string{"color": color})
	u.Object["spec"] = map[string]any{"color": color}
	return u
}

func TestG4AWriteThroughOneVersionOfACustomKindIsShownInTheOtherAtOnce(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	g := newGadget(t, ns)
	g.install("v1", "v2")
	c := w.client(t)
	require.NoError(t, c.WaitFor(ctx, g.kind))
	for query, q := range map[string]kates.Query{
		"all": {}, "by label": {LabelSelector: "color=red"}, "by field": {FieldSelector: "spec.color=red"},
	} {
		for read, write := range map[string]string{"v1": "v2", "v2": "v1"} {
			t.Run(fmt.Sprintf("%s, %s read, %s written", query, read, write), func(t *testing.T) {
				q.Kind, q.Namespace = strings.Replace(g.kind, ".", "."+read+".", 1), ns
				r := lateReader(t, w, c, q, "gadgets")
				defer r.acc.Close()
				shows := func(color string) {
					t.Helper()
					shown := r.look("x")
					require.Equal(t, query == "all" || color == "red", shown != nil, color)
					if shown != nil {
						assert.Equal(t, g.group+"/"+read, shown.GetAPIVersion())
						assert.Equal(t, color, shown.GetLabels()["color"])
					}
				}
				require.NoError(t, c.Create(ctx, g.object(write, ns, "x", "red"), nil))
				shows("red")
				require.NoError(t, c.Upsert(ctx, nil, g.object(write, ns, "x", "blue"), nil))
				shows("blue")
				require.NoError(t, c.Apply(ctx, g.object(write, ns, "x", "red"), nil, kates.ForceOwnership()))
				shows("red")
				require.NoError(t, c.Delete(ctx, g.object(write, ns, "x", ""), nil))
				require.Nil(t, r.look("x"))
				r.settled(w, "gadgets")
			})
		}
	}
	c.Close()
	g.remove()
}

type withGadgets struct {
	ConfigMaps []*kates.ConfigMap
	Gadgets    []*kates.Unstructured
	Deltas     []*kates.Delta
}

func (g *gadget) watch(c *kates.Client, ns string) *kates.Snapshots[withGadgets] {
	g.t.Helper()
	s, err := kates.Watch[withGadgets](g.t.Context(), c, kates.Query{Name: "ConfigMaps", Namespace: ns},
		kates.Query{Name: "Gadgets", Kind: g.kind, Namespace: ns, Optional: true})
	require.NoError(g.t, err)
	return s
}

func TestG8AnOptionalKindJoinsWhenItIsInstalledAndLeavesWhenItIsRemoved(t *testing.T) {
	t.Parallel()
	ns, ctx := namespace(t), t.Context()
	g := newGadget(t, ns)
	c := newWire(t).client(t, kates.Tuning{KindPoll: 200 * time.Millisecond})
	s := g.watch(c, ns)
	var snap withGadgets
	awaitSnap(t, s, &snap, func(*withGadgets) bool { return s.Ready() == nil })
	assert.Nil(t, snap.Gadgets)
	for round := range 2 {
		g.install("v1")
		awaitSnap(t, s, &snap, func(s *withGadgets) bool { return s.Gadgets != nil })
		assert.Empty(t, snap.Gadgets)
		// the server lists a kind before its discovery has it
		require.NoError(t, c.WaitFor(ctx, g.kind))
		require.NoError(t, c.Create(ctx, g.object("v1", ns, "mine", "red"), nil))
		awaitSnap(t, s, &snap, func(s *withGadgets) bool { return len(s.Gadgets) == 1 })
		_, err := foreign(t).Resource(g.resource("v1")).Namespace(ns).Create(ctx, g.object("v1", ns, "theirs", "red"), metav1.CreateOptions{})
		require.NoError(t, err)
		awaitSnap(t, s, &snap, func(s *withGadgets) bool { return len(s.Gadgets) == 2 })
		g.remove()
		awaitSnap(t, s, &snap, func(s *withGadgets) bool { return s.Gadgets == nil })
		require.NoError(t, s.Ready(), "round %d", round)
	}
	_, err := foreign(t).Resource(configMaps).Namespace(ns).Create(ctx, object(configMaps, ns, "x", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	awaitSnap(t, s, &snap, func(s *withGadgets) bool { return len(s.ConfigMaps) == 1 })
}

func TestAnOptionalKindThatTurnsOutToBeInNoNamespaceIsAnErrorInTheStatusOfAQueryWithOne(t *testing.T) {
	t.Parallel()
	for name, former := range map[string]string{"it was not served": "", "it was in namespaces": "Namespaced"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			g := newGadget(t, ns)
			c := newWire(t).client(t, kates.Tuning{KindPoll: 200 * time.Millisecond})
			s := g.watch(c, ns)
			var snap withGadgets
			awaitSnap(t, s, &snap, func(*withGadgets) bool { return s.Ready() == nil })
			status := func() kates.QueryStatus { return s.Status().Queries[1] }
			if former != "" {
				g.installAs(former, "v1")
				awaitSnap(t, s, &snap, func(s *withGadgets) bool { return s.Gadgets != nil })
				g.remove()
			}
			require.Eventually(t, func() bool { return status().Absent }, patience, 50*time.Millisecond)
			require.NoError(t, s.Status().Err())
			const says = "gadgets are in no namespace"
			g.installAs("Cluster", "v1")
			require.Eventually(t, func() bool { return strings.Contains(status().Error, says) }, patience, 50*time.Millisecond)
			assert.False(t, status().Absent)
			assert.ErrorContains(t, s.Status().Err(), says)
			assert.NoError(t, s.Ready())

			namespaced := kates.Query{Name: "Gadgets", Kind: g.kind, Namespace: ns, Optional: true}
			_, err := kates.Watch[withGadgets](t.Context(), c, kates.Query{Name: "ConfigMaps"}, namespaced)
			assert.ErrorContains(t, err, says)
			assert.ErrorContains(t, s.Replace(t.Context(), namespaced), says)
			require.NoError(t, s.Replace(t.Context(), kates.Query{Name: "Gadgets", Kind: g.kind, Optional: true}))
			awaitSnap(t, s, &snap, func(s *withGadgets) bool { return s.Gadgets != nil })
			require.Eventually(t, func() bool { return s.Status().Err() == nil }, patience, 50*time.Millisecond)
		})
	}
}
