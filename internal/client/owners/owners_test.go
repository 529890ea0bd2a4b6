package owners

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// owner is a ConfigMap of namespace ns, whose kind only the scheme knows.
func owner(name string, uid types.UID) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
}

// plain is a reference to such an owner.
func plain(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: uid}
}

// controls is a reference by which it controls.
func controls(name string, uid types.UID) metav1.OwnerReference {
	r := plain(name, uid)
	r.Controller, r.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
	return r
}

func owned(references ...metav1.OwnerReference) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owned", OwnerReferences: references}}
}

type references = []metav1.OwnerReference

var (
	a, b       = plain("a", "1"), plain("b", "2")
	a2         = plain("a", "2") // another object of the name
	aControls  = controls("a", "1")
	bControls  = controls("b", "2")
	blocksOnly = func() metav1.OwnerReference { r := a; r.BlockOwnerDeletion = ptr.To(true); return r }()
)

// TestOwnerReferencesTable has the references after each change for the owner a. They are compared
// in order.
func TestOwnerReferencesTable(t *testing.T) {
	is := owner("a", "1")
	set := func(o Object) error { return SetController(is, o) }
	add := func(o Object) error { return Add(is, o) }
	replace := func(o Object) error { Replace(is, o); return nil }
	remove := func(o Object) error {
		assert.Equal(t, Has(is, o), Remove(is, o), "it reports whether a was an owner")
		return nil
	}
	put := func(o Object) error { Put(o, aControls); return nil }
	for name, c := range map[string]struct {
		before references
		change func(Object) error
		after  references
		err    error
	}{
		"set: the first":                          {nil, set, references{aControls}, nil},
		"set: beside another owner":               {references{b}, set, references{b, aControls}, nil},
		"set: in place of a plain reference":      {references{a, b}, set, references{aControls, b}, nil},
		"set: of its former self":                 {references{a2}, set, references{a2, aControls}, nil},
		"set: again":                              {references{b, aControls}, set, references{b, aControls}, nil},
		"set: twice in the list":                  {references{a, b, a}, set, references{aControls, b}, nil},
		"set: another controls it":                {references{bControls}, set, references{bControls}, ErrControlled},
		"add: the first":                          {nil, add, references{a}, nil},
		"add: beside a controller":                {references{bControls}, add, references{bControls, a}, nil},
		"add: it controls already":                {references{aControls, b}, add, references{aControls, b}, nil},
		"add: it blocks the deletion already":     {references{blocksOnly}, add, references{blocksOnly}, nil},
		"remove: none":                            {nil, remove, nil, nil},
		"remove: another":                         {references{b, a2}, remove, references{b, a2}, nil},
		"remove: the last":                        {references{aControls}, remove, nil, nil},
		"remove: twice in the list":               {references{a, b, aControls}, remove, references{b}, nil},
		"replace: none":                           {nil, replace, references{aControls}, nil},
		"replace: a controller":                   {references{bControls}, replace, references{aControls}, nil},
		"replace: not a plain owner":              {references{b, a2}, replace, references{b, a2, aControls}, nil},
		"replace: itself":                         {references{a, b, bControls}, replace, references{b, aControls}, nil},
		"put: at the end":                         {references{b}, put, references{b, aControls}, nil},
		"put: in place of one to the same":        {references{b, a, a2}, put, references{b, aControls, a2}, nil},
		"put: in place of the first of some such": {references{b, a, a2, a}, put, references{b, aControls, a2}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := owned(c.before...)
			require.ErrorIs(t, c.change(o), c.err)
			assert.Equal(t, c.after, o.OwnerReferences)
		})
	}
}

// TestTheListOfReferencesIsReplacedAndNotWrittenTo, since a live object may share it.
func TestTheListOfReferencesIsReplacedAndNotWrittenTo(t *testing.T) {
	is := owner("a", "1")
	for name, change := range map[string]func(Object){
		"set":     func(o Object) { require.NoError(t, SetController(is, o)) },
		"add":     func(o Object) { require.NoError(t, Add(is, o)) },
		"remove":  func(o Object) { require.True(t, Remove(is, o)) },
		"replace": func(o Object) { Replace(is, o) },
		"put":     func(o Object) { Put(o, aControls) },
	} {
		t.Run(name, func(t *testing.T) {
			shared := references{a, controls("c", "3"), b}
			shared[1].Controller = ptr.To(false)
			live, o := owned(shared...), owned(shared...)
			change(o)
			for i := range o.OwnerReferences {
				o.OwnerReferences[i].Name = "written"
				if c := o.OwnerReferences[i].Controller; c != nil {
					*c = !*c
				}
			}
			assert.Equal(t, references{a, shared[1], b}, live.OwnerReferences)
			assert.False(t, *live.OwnerReferences[1].Controller)
		})
	}
	put := controls("c", "3")
	o := owned()
	Put(o, put)
	*o.OwnerReferences[0].Controller = false
	assert.True(t, *put.Controller, "the reference is copied, too")
}

// TestAnObjectWithoutOwnersHasNoList: an untyped object must not get an empty one.
func TestAnObjectWithoutOwnersHasNoList(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "owned"}}}
	Put(u, a)
	require.True(t, Remove(owner("a", "1"), u))
	assert.Equal(t, map[string]any{"metadata": map[string]any{"name": "owned"}}, u.Object)
}

func TestOwnersAreFound(t *testing.T) {
	is := owner("a", "1")
	for name, c := range map[string]struct {
		references  references
		has, others bool
	}{
		"none":              {nil, false, false},
		"it":                {references{a}, true, false},
		"it twice":          {references{a, aControls}, true, false},
		"another":           {references{b}, false, true},
		"both":              {references{b, a}, true, true},
		"its former self":   {references{a2}, false, true},
		"one without a UID": {references{plain("a", "")}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.has, Has(is, owned(c.references...)))
			assert.Equal(t, c.others, HasOthers(is, owned(c.references...)))
		})
	}
}

func TestWhoCannotBeAnOwner(t *testing.T) {
	elsewhere, nameless := owner("a", "1"), owner("", "1")
	elsewhere.Namespace = "other"
	kindless := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}
	versionless := kindless.DeepCopy()
	versionless.SetKind("Thing")
	kindless.SetAPIVersion("v1")
	for name, c := range map[string]struct {
		owner Object
		says  string
	}{
		"in another namespace": {elsewhere, `own "owned" in "ns": its owner is in another namespace: ConfigMap "a" is in "other"`},
		"without a name":       {nameless, "an owner without a name: a ConfigMap"},
		"without a kind":       {kindless, `an owner without apiVersion or kind: *unstructured.Unstructured "x"`},
		"without a version":    {versionless, "an owner without apiVersion or kind"},
	} {
		t.Run(name, func(t *testing.T) {
			o := owned(b)
			assert.ErrorContains(t, SetController(c.owner, o), c.says)
			assert.ErrorContains(t, Add(c.owner, o), c.says)
			assert.Equal(t, references{b}, o.OwnerReferences)
		})
	}
	require.ErrorIs(t, Add(elsewhere, owned()), ErrOwnerScope)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "3"}}
	o := owned()
	require.NoError(t, Add(node, o), "an owner without a namespace may own all")
	assert.Equal(t, references{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "3"}}, o.OwnerReferences)
}

func TestReferencesToTheSameOwner(t *testing.T) {
	ref := func(apiVersion, kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid}
	}
	deployment := ref("apps/v1", "Deployment", "d", "")
	for name, c := range map[string]struct {
		a, b metav1.OwnerReference
		same bool
	}{
		"one UID, whatever the rest":   {ref("v1", "A", "a", "1"), ref("x/v1", "B", "b", "1"), true},
		"two UIDs":                     {ref("v1", "A", "a", "1"), ref("v1", "A", "a", "2"), false},
		"one of them has a UID":        {ref("v1", "A", "a", "1"), ref("v1", "A", "a", ""), false},
		"the other has":                {ref("v1", "A", "a", ""), ref("v1", "A", "a", "1"), false},
		"no UIDs: alike":               {deployment, deployment, true},
		"no UIDs: another version":     {deployment, ref("apps/v1beta1", "Deployment", "d", ""), true},
		"no UIDs: another group":       {deployment, ref("extensions/v1", "Deployment", "d", ""), false},
		"no UIDs: another kind":        {deployment, ref("apps/v1", "StatefulSet", "d", ""), false},
		"no UIDs: another name":        {deployment, ref("apps/v1", "Deployment", "e", ""), false},
		"no UIDs: core and no version": {ref("v1", "A", "a", ""), ref("", "A", "a", ""), true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.same, Same(c.a, c.b)) })
	}
}

func TestTheKindOfAnOwnerIsItsOwnOrTheSchemes(t *testing.T) {
	carried := owner("a", "1")
	carried.SetGroupVersionKind(schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "Special"})
	half := owner("a", "1")
	half.Kind = "Special"
	unknown := &unstructured.Unstructured{Object: map[string]any{"kind": "Thing"}}
	for name, c := range map[string]struct {
		object Object
		want   schema.GroupVersionKind
	}{
		"the object says":       {carried, schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "Special"}},
		"the scheme says":       {owner("a", "1"), corev1.SchemeGroupVersion.WithKind("ConfigMap")},
		"the object says half":  {half, corev1.SchemeGroupVersion.WithKind("ConfigMap")},
		"nobody says the group": {unknown, schema.GroupVersionKind{Kind: "Thing"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, KindOf(c.object)) })
	}
	want := metav1.OwnerReference{
		APIVersion: "g/v2", Kind: "Special", Name: "a", UID: "1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
	first, second := ControllerReference(carried), ControllerReference(carried)
	assert.Equal(t, want, first)
	assert.NotSame(t, first.Controller, second.Controller, "a new one on each call")
}
