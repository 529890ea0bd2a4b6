package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/kates"
)

// thingSchema has each kind of map and list that a custom kind may have.
const thingSchema = `{"type": "object", "properties": {
	"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
	"spec": {"type": "object", "properties": {
		"number": {"type": "integer"}, "ratio": {"type": "number"}, "text": {"type": "string", "nullable": true},
		"nested": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "given"}}},
		"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		"strings": {"type": "object", "additionalProperties": {"type": "string"}},
		"objects": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}},
		"sets": {"type": "object", "additionalProperties": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}},
		"whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
		"list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}},
		"set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
		"items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "protocol"], "items": {
			"type": "object", "required": ["name"], "properties": {
				"name": {"type": "string"}, "protocol": {"type": "string", "default": "TCP"}, "a": {"type": "string"}, "b": {"type": "string"}}}},
		"named": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
			"type": "object", "properties": {"name": {"type": "string", "default": "x"}, "a": {"type": "string"}}}}
	}}
}}`

// installThings makes a kind of that schema.
func installThings(t *testing.T, ns string) schema.GroupVersionKind {
	t.Helper()
	g := newGadget(t, ns)
	g.installWith(thingSchema)
	return schema.GroupVersionKind{Group: g.group, Version: "v1", Kind: "Gadget"}
}

// installWith makes the kind with one version, with a schema and a status subresource.
func (g *gadget) installWith(schema string) {
	g.t.Helper()
	var s map[string]any
	require.NoError(g.t, json.Unmarshal([]byte(schema), &s))
	_, err := g.others().Resource(definitions).Create(g.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": g.kind},
		"spec": map[string]any{
			"group": g.group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": s},
			}},
		},
	}}, metav1.CreateOptions{})
	require.NoError(g.t, err)
	g.serving("v1", true)
}

// anything makes objects, and foreign changes to them, at random.
type anything struct {
	*rand.Rand
	ns    string
	thing schema.GroupVersionKind
}

func (r anything) word() string { return []string{"p", "q", "r"}[r.IntN(3)] }

// some returns some of the fields.
func (r anything) some(fields map[string]func() any) map[string]any {
	all := map[string]any{}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range fields {
			if !yield(name) {
				return
			}
		}
	}) {
		if r.IntN(2) == 0 {
			all[name] = fields[name]()
		}
	}
	return all
}

func (r anything) scalar() any { return r.word() }

func (r anything) flat() any { return r.some(map[string]func() any{"a": r.scalar, "b": r.scalar}) }

func (r anything) deep() any {
	return r.some(map[string]func() any{
		"a": r.flat, "b": r.scalar,
		"c": func() any { return []any{r.flat(), r.word()} },
		"d": func() any { return r.some(map[string]func() any{"e": r.flat}) },
	})
}

func (r anything) words() any {
	all := []any{"x", "y", "z"}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(3)]
}

// items returns items of a list with a key.
func (r anything) items(names ...string) any {
	all := []any{}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+r.IntN(len(names))] {
		item := r.flat().(map[string]any)
		item["name"] = name
		if r.IntN(2) == 0 {
			item["protocol"] = []any{"TCP", "UDP"}[r.IntN(2)]
		}
		all = append(all, item)
	}
	return all
}

// spec returns the spec of a thing.
func (r anything) spec() any {
	return r.some(map[string]func() any{
		"number": func() any { return int64(r.IntN(3)) }, "ratio": func() any { return float64(r.IntN(3)) / 2 },
		"text": func() any { return []any{"p", "q", nil}[r.IntN(3)] }, "nested": r.flat, "free": r.deep,
		"strings": r.flat, "objects": func() any { return r.some(map[string]func() any{"o": r.flat, "p": r.flat}) },
		"sets":  func() any { return r.some(map[string]func() any{"o": r.words, "p": r.words}) },
		"whole": r.flat, "list": func() any { return []any{r.flat(), r.flat()}[:r.IntN(3)] }, "set": r.words,
		"items": func() any { return r.items("i", "j", "k") },
		"named": func() any {
			item := map[string]any{"a": r.word()}
			if r.IntN(2) == 0 {
				item["name"] = "y"
			}
			return []any{item}
		},
	})
}

// metadata sets the metadata besides the name.
func (r anything) metadata(u *kates.Unstructured) {
	for _, field := range []string{"labels", "annotations"} {
		if m := r.flat().(map[string]any); len(m) > 0 {
			u.Object["metadata"].(map[string]any)[field] = m
		}
	}
}

func (r anything) object(kind int) *kates.Unstructured {
	u := &kates.Unstructured{Object: map[string]any{}}
	switch kind {
	case 0:
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		u.Object["data"] = r.flat()
	case 1:
		u.SetGroupVersionKind(r.thing)
		u.Object["spec"] = r.spec()
	case 2:
		u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		u.Object["spec"] = r.deployment()
	}
	u.SetNamespace(r.ns)
	u.SetName("x")
	r.metadata(u)
	return u
}

func (r anything) deployment() any {
	container := func(name string) map[string]any {
		c := r.some(map[string]func() any{
			"env": func() any {
				return []any{map[string]any{"name": "E", "value": r.word()}, map[string]any{"name": "F", "value": r.word()}}[:r.IntN(3)]
			},
			"ports": func() any {
				if name == "d" {
					return []any{map[string]any{"containerPort": int64(81)}}
				}
				return []any{map[string]any{"containerPort": int64(80)}, map[string]any{"containerPort": int64(53), "protocol": "UDP", "name": "dns"}}[:1+r.IntN(2)]
			},
			"resources": func() any {
				return map[string]any{"limits": map[string]any{"cpu": []any{"1000m", "1", "2"}[r.IntN(3)]}}
			},
			"args": r.words,
		})
		c["name"], c["image"] = name, r.word()
		return c
	}
	labels := map[string]any{"app": "x"}
	spec := r.some(map[string]func() any{"replicas": func() any { return int64(r.IntN(3)) }, "paused": func() any { return r.IntN(2) == 0 }})
	containers := []any{container("c"), container("d")}
	r.Shuffle(2, func(i, j int) { containers[i], containers[j] = containers[j], containers[i] })
	spec["selector"] = map[string]any{"matchLabels": labels}
	spec["template"] = map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": containers[:1+r.IntN(2)]}}
	return spec
}

// drift is a foreign write: it replaces a part of the object by a part of another such object, or
// removes it.
func (r anything) drift(t *testing.T, in dynamic.ResourceInterface, kind int) {
	now, err := in.Get(t.Context(), "x", metav1.GetOptions{})
	require.NoError(t, err)
	was, other := now.DeepCopy(), r.object(kind)
	for range 1 + r.IntN(2) {
		r.mix(now.Object, other.Object, 0)
	}
	next, err := in.Update(t.Context(), now, metav1.UpdateOptions{FieldManager: "others"})
	if apierrors.IsInvalid(err) {
		return
	}
	require.NoError(t, err)
	if r.IntN(3) == 0 { // there and back
		was.SetResourceVersion(next.GetResourceVersion())
		was.SetManagedFields(next.GetManagedFields())
		_, err = in.Update(t.Context(), was, metav1.UpdateOptions{FieldManager: "others"})
		require.NoError(t, err)
	}
}

// kept is what others do not change: the fields that nobody may change, and finalizers, which
// would keep the object.
var kept = []string{"name", "namespace", "uid", "resourceVersion", "managedFields", "selector", "creationTimestamp", "generation", "finalizers"}

// mix changes some part at random.
func (r anything) mix(into, other map[string]any, depth int) {
	var names []string
	for name := range into {
		if depth > 0 || name != "apiVersion" && name != "kind" {
			names = append(names, name)
		}
	}
	for name := range other {
		if _, ok := into[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return
	}
	name := names[r.IntN(len(names))]
	if name == "image" || depth == 1 && slices.Contains(kept, name) {
		return
	}
	mine, isMap := into[name].(map[string]any)
	theirs, _ := other[name].(map[string]any)
	list, isList := into[name].([]any)
	switch {
	case isMap && len(mine) > 0 && (depth == 0 || r.IntN(4) > 0):
		r.mix(mine, theirs, depth+1)
	case isList && len(list) > 1 && r.IntN(2) == 0:
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	case isList && len(list) > 0 && r.IntN(2) == 0:
		if item, ok := list[r.IntN(len(list))].(map[string]any); ok {
			r.mix(item, r.flat().(map[string]any), depth+1)
		}
	case other[name] != nil:
		into[name] = other[name]
	default:
		delete(into, name)
	}
}

// It does so whatever others have done.
func TestApplyOwnedLeavesWhatAnApplyWouldLeave(t *testing.T) {
	for kind, name := range []string{"ConfigMap", "Gadget", "Deployment"} {
		t.Run(name, func(t *testing.T) {
			o := newOwnedTest(t)
			r := anything{rand.New(rand.NewPCG(2, uint64(kind))), o.ns, schema.GroupVersionKind{}}
			if kind == 1 {
				r.thing = installThings(t, o.ns)
			}
			o.anyhow(r, kind)
		})
	}
}

func (o *ownedTest) anyhow(r anything, kind int) {
	gvr := []schema.GroupVersionResource{configMaps, {Group: r.thing.Group, Version: "v1", Resource: "gadgets"}, {Group: "apps", Version: "v1", Resource: "deployments"}}[kind]
	in := foreign(o.T).Resource(gvr).Namespace(o.ns)
	clients := []*kates.Client{newWire(o.T).client(o.T, kates.WithNamespace(o.ns)), newWire(o.T).client(o.T, kates.WithNamespace(o.ns))}
	switch kind {
	case 0:
		require.NoError(o, open[*corev1.ConfigMap](o.T, clients[0], o.ns))
	case 2:
		require.NoError(o, open[*appsv1.Deployment](o.T, clients[0], o.ns))
	}
	full := []string{"configmaps", "gadgets." + r.thing.Group, "deployments.v1.apps"}[kind]
	reader, err := kates.NewLister[*kates.Unstructured](o.Context(), clients[1], kates.Query{Kind: full, Namespace: o.ns})
	require.NoError(o, err)
	o.Cleanup(reader.Close)
	wanted := r.object(kind)
	skipped, sent := 0, 0
	for round := range []int{40, 140, 50}[kind] {
		if r.IntN(3) == 0 {
			wanted = r.object(kind)
		}
		client := clients[r.IntN(2)]
		require.NoError(o, client.Sync(o.Context()))
		set := o.set(wanted)
		set.Existing, set.Adopt = []kates.Object{}, true
		result, err := client.ApplyOwned(o.Context(), set, kates.ForceOwnership())
		if apierrors.IsInvalid(err) { // together with the changes of others
			require.NoError(o, in.Delete(o.Context(), "x", metav1.DeleteOptions{}))
			continue
		}
		require.NoError(o, err, "round %d", round)
		skipped, sent = skipped+len(result.Unchanged), sent+len(result.Applied)
		stored, err := in.Get(o.Context(), "x", metav1.GetOptions{})
		require.NoError(o, err)
		would, err := o.reapplied(in, wanted, stored)
		if apierrors.IsInvalid(err) {
			require.Len(o, result.Applied, 1)
			require.NoError(o, in.Delete(o.Context(), "x", metav1.DeleteOptions{}))
			continue
		}
		require.NoError(o, err)
		if a, b := timeless(stored), timeless(would); !assert.Equal(o, b, a, "round %d: %v", round, len(result.Applied)) {
			o.Logf("wanted %v", wanted)
			return
		}
		for range r.IntN(3) {
			r.drift(o.T, in, kind)
		}
	}
	assert.Greater(o, skipped, 10)
	assert.Greater(o, sent, 10)
}

// reapplied returns what a plain apply of wanted would make of stored.
func (o *ownedTest) reapplied(in dynamic.ResourceInterface, wanted, stored *kates.Unstructured) (*kates.Unstructured, error) {
	wanted = wanted.DeepCopy()
	labels, notes := wanted.GetLabels(), wanted.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if notes == nil {
		notes = map[string]string{}
	}
	labels[kates.OwnedSetLabel], notes[kates.AppliedAnnotation] = "e2e."+string(o.root.GetUID()), stored.GetAnnotations()[kates.AppliedAnnotation]
	wanted.SetLabels(labels)
	wanted.SetAnnotations(notes)
	require.NoError(o, kates.SetControllerReference(o.root, wanted))
	data, err := wanted.MarshalJSON()
	require.NoError(o, err)
	force := true
	return in.Patch(o.Context(), wanted.GetName(), kates.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "kates", Force: &force, DryRun: []string{metav1.DryRunAll}})
}

// tidy removes what is empty: an apply treats that differently from time to time.
func tidy(value any) (empty bool) {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		maps.DeleteFunc(value, func(name string, part any) bool { return tidy(part) && !strings.Contains(name, ":") })
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// timeless returns an object without the times at which it was written.
func timeless(u *kates.Unstructured) string {
	u = u.DeepCopy()
	entries := slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager != "kates" })
	for i := range entries {
		entries[i].Time = nil
	}
	u.SetManagedFields(entries)
	u.SetResourceVersion("")
	u.SetGeneration(0)
	tidy(u.Object)
	data, err := json.MarshalIndent(u.Object, "", " ")
	return fmt.Sprint(string(data), err)
}
