package object

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type lite struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Node string          `json:"node"`
		Size int64           `json:"size"`
		Raw  json.RawMessage `json:"raw,omitempty"`
	} `json:"spec"`
}

var pods = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

func projected(change func(*Head, *lite)) *Projected {
	at := metav1.Unix(1e9, 0)
	h := Head{Name: "a", Namespace: "ns", UID: "u", Version: "7", Created: &at, Labels: map[string]string{"k": "v"}}
	value := &lite{}
	value.Metadata.Name, value.Spec.Node, value.Spec.Size = "a", "node", 1<<60+1
	if change != nil {
		change(&h, value)
	}
	return NewProjected(&pods, h, value)
}

func TestAPredicateSeesWhatIsHeldOfAProjectedObject(t *testing.T) {
	p := projected(func(h *Head, _ *lite) {
		h.Deleted = h.Created
		h.More = More{Annotations: map[string]string{"a": "b"}, Owners: []metav1.OwnerReference{{Kind: "Owner", Name: "o"}}, Finalizers: []string{"f"}, Generation: 3}
	})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"node": "node", "size": int64(1<<60 + 1)},
		"metadata": map[string]any{
			"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "labels": map[string]any{"k": "v"},
			"annotations": map[string]any{"a": "b"}, "finalizers": []any{"f"}, "generation": int64(3),
			"ownerReferences":   []any{map[string]any{"apiVersion": "", "kind": "Owner", "name": "o", "uid": ""}},
			"creationTimestamp": "2001-09-09T01:46:40Z", "deletionTimestamp": "2001-09-09T01:46:40Z",
		},
	}, content)
	text, err := json.Marshal(NewProjected(&pods, Head{Name: "a"}, &[]int{}))
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, string(text), "a type with a form of its own")
	_, err = json.Marshal(NewProjected(&pods, Head{}, &struct{ F func() }{}))
	assert.Error(t, err)
}

func TestAProjectedObjectHasItsIdentity(t *testing.T) {
	p := projected(nil)
	assert.Equal(t, Key{Namespace: "ns", Name: "a"}, KeyOf(p))
	assert.Equal(t, "u 7", string(p.GetUID())+" "+p.GetResourceVersion())
	assert.Equal(t, pods, p.GetObjectKind().GroupVersionKind())
	assert.Equal(t, int64(1e9), p.GetCreationTimestamp().Unix())
	assert.Nil(t, p.GetDeletionTimestamp())
	assert.Equal(t, metav1.Time{}, NewProjected(&pods, Head{Name: "a"}, &lite{}).GetCreationTimestamp())
	assert.Equal(t, map[string]string{"k": "v"}, p.GetLabels())
	assert.Same(t, p, p.DeepCopyObject())
	assert.Panics(t, func() { p.SetManagedFields(nil) }, "nobody writes to it")
	assert.Panics(t, func() { p.GetObjectKind().SetGroupVersionKind(pods) })
}

func TestWhatIsHeldBesideAStructIsWhatAQueryAsksFor(t *testing.T) {
	at := metav1.Unix(1e9, 0)
	whole := Head{Name: "a", Namespace: "ns", UID: "u", Version: "7", Created: &at, Deleted: &at, Labels: map[string]string{"k": "v"},
		More: More{Annotations: map[string]string{"a": "b"}, Owners: []metav1.OwnerReference{{Name: "o"}}, Finalizers: []string{"f"}, Generation: 3}}
	all := Beside{Labels: true, Annotations: true, Owners: true, Finalizers: true, Generation: true}
	assert.Equal(t, whole, all.Of(whole))
	assert.True(t, all.More())
	for b, lacks := range map[Beside]func(*Head){
		{Annotations: true, Owners: true, Finalizers: true, Generation: true}: func(h *Head) { h.Labels = nil },
		{Labels: true, Owners: true, Finalizers: true, Generation: true}:      func(h *Head) { h.More.Annotations = nil },
		{Labels: true, Annotations: true, Finalizers: true, Generation: true}: func(h *Head) { h.More.Owners = nil },
		{Labels: true, Annotations: true, Owners: true, Generation: true}:     func(h *Head) { h.More.Finalizers = nil },
		{Labels: true, Annotations: true, Owners: true, Finalizers: true}:     func(h *Head) { h.More.Generation = 0 },
		{Labels: true}: func(h *Head) { h.More = More{} },
	} {
		want := whole
		lacks(&want)
		assert.Equal(t, want, b.Of(whole), b)
		assert.Equal(t, b != Beside{Labels: true}, b.More(), b)
	}
	p := NewProjected(&pods, whole, &lite{})
	assert.Equal(t, whole, p.Head())
	assert.Equal(t, whole.More, More{Annotations: p.GetAnnotations(), Owners: p.GetOwnerReferences(), Finalizers: p.GetFinalizers(), Generation: p.GetGeneration()})
	assert.Equal(t, &at, p.GetDeletionTimestamp())
	bare := NewProjected(&pods, Head{Name: "a"}, &lite{})
	assert.Equal(t, Head{Name: "a"}, bare.Head())
	assert.Nil(t, bare.GetDeletionTimestamp())
	assert.True(t, bare.GetCreationTimestamp().Time.IsZero())
}

func TestObjectsAreShownAlikeWhateverIsHeldBesideTheStruct(t *testing.T) {
	beside := projected(func(h *Head, _ *lite) { h.Labels, h.More.Generation = nil, 5 })
	assert.True(t, SameShown(projected(nil), beside))
	for name, change := range map[string]func(*Head, *lite){
		"name": func(h *Head, _ *lite) { h.Name = "b" }, "namespace": func(h *Head, _ *lite) { h.Namespace = "b" }, "UID": func(h *Head, _ *lite) { h.UID = "b" },
		"version": func(h *Head, _ *lite) { h.Version = "8" }, "value": func(_ *Head, l *lite) { l.Spec.Node = "b" },
	} {
		assert.False(t, SameShown(projected(nil), projected(change)), name)
	}
}

// TestG10NobodyWritesToAProjectedObject: other snapshots show it, too.
func TestG10NobodyWritesToAProjectedObject(t *testing.T) {
	p := projected(nil)
	for name, write := range map[string]func(){
		"name": func() { p.SetName("") }, "namespace": func() { p.SetNamespace("") }, "UID": func() { p.SetUID("") }, "version": func() { p.SetResourceVersion("") },
		"labels": func() { p.SetLabels(nil) }, "deletion": func() { p.SetDeletionTimestamp(nil) }, "creation": func() { p.SetCreationTimestamp(metav1.Time{}) },
		"generated name": func() { p.SetGenerateName("") }, "generation": func() { p.SetGeneration(0) }, "link": func() { p.SetSelfLink("") },
		"grace": func() { p.SetDeletionGracePeriodSeconds(nil) }, "annotations": func() { p.SetAnnotations(nil) }, "finalizers": func() { p.SetFinalizers(nil) },
		"owners": func() { p.SetOwnerReferences(nil) }, "managers": func() { p.SetManagedFields(nil) },
		"kind": func() { p.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) },
	} {
		assert.Panics(t, write, name)
	}
	assert.Equal(t, []any{"", "", (*int64)(nil), []string(nil), []metav1.ManagedFieldsEntry(nil)},
		[]any{p.GetGenerateName(), p.GetSelfLink(), p.GetDeletionGracePeriodSeconds(), p.GetFinalizers(), p.GetManagedFields()}, "these are not held")
}

func TestProjectedObjectsAreTheSameIfAllThatIsHeldIs(t *testing.T) {
	assert.True(t, SameContent(projected(nil), projected(nil)))
	raw := func(text string) *Projected {
		return projected(func(_ *Head, l *lite) { l.Spec.Raw = json.RawMessage(text) })
	}
	assert.True(t, SameContent(raw(`{"a":1,"b":2}`), raw(`{ "b":2, "a":1 }`)), "the answer to a write may have another text")
	later := metav1.Unix(2e9, 0)
	for name, change := range map[string]func(*Head, *lite){
		"name":      func(h *Head, _ *lite) { h.Name = "b" },
		"namespace": func(h *Head, _ *lite) { h.Namespace = "b" },
		"uid":       func(h *Head, _ *lite) { h.UID = "b" },
		"version":   func(h *Head, _ *lite) { h.Version = "8" },
		"created":   func(h *Head, _ *lite) { h.Created = &later },
		"deleted":   func(h *Head, _ *lite) { h.Deleted = &later },
		"label":     func(h *Head, _ *lite) { h.Labels = map[string]string{"k": "w"} },
		"annotated": func(h *Head, _ *lite) { h.More.Annotations = map[string]string{"k": "w"} },
		"owner":     func(h *Head, _ *lite) { h.More.Owners = []metav1.OwnerReference{{Name: "o"}} },
		"at":        func(h *Head, _ *lite) { h.More.Generation = 2 },
		"field":     func(_ *Head, l *lite) { l.Spec.Node = "b" },
		"raw field": func(_ *Head, l *lite) { l.Spec.Raw = json.RawMessage("1") },
		"no labels": func(h *Head, _ *lite) { h.Labels = nil },
		"no moment": func(h *Head, _ *lite) { h.Created = nil },
		"no text":   func(_ *Head, l *lite) { l.Spec.Node = "" },
	} {
		assert.False(t, SameContent(projected(nil), projected(change)), name)
		assert.False(t, SameContent(projected(change), projected(nil)), "no longer: %s", name)
	}
	assert.False(t, SameContent(projected(nil), NewProjected(&pods, Head{Name: "a"}, &struct{}{})))
	assert.False(t, SameContent(projected(nil), &metav1.PartialObjectMetadata{}))
	assert.False(t, SameContent(&metav1.PartialObjectMetadata{}, projected(nil)))
}

func TestG10ValuesThatAreTheSameAreOnePointerAndNoOtherIsWrittenTo(t *testing.T) {
	var typs []reflect.Type
	intern := func(p, before any) { typs = append(typs, reflect.TypeOf(p).Elem()) }
	before := projected(nil)
	same := projected(func(h *Head, _ *lite) { h.Version = "8" })
	same.Share(before, intern)
	assert.Same(t, before.Value(), same.Value())
	assert.Equal(t, "8", same.GetResourceVersion())
	assert.Equal(t, []reflect.Type{reflect.TypeFor[shared]()}, typs, "its value has been shared before")
	typs = nil
	other := projected(func(_ *Head, l *lite) { l.Spec.Node = "other" })
	other.Share(before, intern)
	assert.Equal(t, "other", other.Value().(*lite).Spec.Node)
	assert.Equal(t, "node", before.Value().(*lite).Spec.Node)
	assert.Equal(t, []reflect.Type{reflect.TypeFor[shared](), reflect.TypeFor[lite]()}, typs)
	typs = nil
	owned := func(generation int64) *Projected {
		return projected(func(h *Head, _ *lite) {
			h.More = More{Owners: []metav1.OwnerReference{{Name: "o"}}, Generation: generation}
		})
	}
	first, second, third := owned(1), owned(1), owned(2)
	first.Share(before, intern)
	second.Share(first, intern)
	third.Share(second, intern)
	assert.Same(t, first.rare, second.rare)
	assert.Equal(t, int64(1), second.GetGeneration())
	assert.Equal(t, int64(2), third.GetGeneration())
	of := reflect.TypeFor[shared]()
	assert.Equal(t, []reflect.Type{of, reflect.TypeFor[rare](), of, of, reflect.TypeFor[rare]()}, typs)
	alone := projected(nil)
	alone.Share(nil, intern)
	alone.Share(NewProjected(&pods, Head{}, &struct{}{}), intern)
	assert.NotSame(t, before.Value(), alone.Value())
}

// metadataOf is what functions of the library read of an object.
func metadataOf(p *Projected) []any {
	return []any{p.GetAnnotations(), p.GetOwnerReferences(), p.GetGeneration(), p.GetLabels(), p.GetDeletionTimestamp()}
}

func TestWhatGoesAwayFromAProjectedObjectIsNotHeldFromTheVersionBefore(t *testing.T) {
	all := map[string]func(*Head){
		"annotations": func(h *Head) { h.More.Annotations = map[string]string{"a": "b"} },
		"owners":      func(h *Head) { h.More.Owners = []metav1.OwnerReference{{Kind: "Owner", Name: "o"}} },
		"generation":  func(h *Head) { h.More.Generation = 3 },
		"labels":      func(h *Head) { h.Labels = map[string]string{"k": "v"} },
		"deletion":    func(h *Head) { h.Deleted = h.Created },
	}
	// with returns an object that has some of it.
	with := func(has func(name string) bool) *Projected {
		return projected(func(h *Head, _ *lite) {
			h.Labels = nil
			for name, put := range all {
				if has(name) {
					put(h)
				}
			}
		})
	}
	none := func(string) bool { return false }
	intern := func(any, any) {}
	for gone := range all {
		for what, has := range map[string]struct{ before, after func(string) bool }{
			"the last":      {func(name string) bool { return name == gone }, none},
			"one of all":    {func(string) bool { return true }, func(name string) bool { return name != gone }},
			"the first one": {none, func(name string) bool { return name == gone }},
		} {
			before, now := with(has.before), with(has.after)
			now.Share(before, intern)
			assert.Equal(t, metadataOf(with(has.after)), metadataOf(now), "%s, %s", gone, what)
			assert.Equal(t, metadataOf(with(has.before)), metadataOf(before), "nobody writes to it")
			assert.False(t, SameContent(before, now), "%s, %s", gone, what)
			assert.False(t, SameContent(now, before), "%s, %s", gone, what)
		}
	}
}

func TestOfTheMetadataThatIsHeldWhatSomebodyReads(t *testing.T) {
	whole := Head{
		Name: "a", Labels: map[string]string{"k": "v"},
		More: More{Annotations: map[string]string{"a": "b"}, Owners: []metav1.OwnerReference{{Name: "o"}}, Finalizers: []string{"f"}, Generation: 3},
	}
	for _, b := range []Beside{{}, {Labels: true}, {Annotations: true}, {Owners: true}, {Finalizers: true}, {Generation: true}, {true, true, true, true, true}} {
		h := b.Of(whole)
		assert.Equal(t, b, Beside{h.Labels != nil, h.More.Annotations != nil, h.More.Owners != nil, h.More.Finalizers != nil, h.More.Generation != 0})
		assert.Equal(t, b.Annotations || b.Owners || b.Finalizers || b.Generation, b.More(), "%+v", b)
		assert.Equal(t, "a", h.Name)
	}
}
