package snapshot

import (
	"maps"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/object"
)

// patch is a change of a map that was delivered, for the next one.
type patch struct {
	old, new Object // nil: not shown before, not shown from now on
	word     unsafe.Pointer
}

// outdate notes that the map delivered last is no longer the table's value: what changed, where the next one is a copy of
// it, or nothing, where it is made anew.
func (t *Table) outdate(p *plan) {
	if !t.value.IsValid() {
		return
	}
	// A value has to be one word to be in a map without being copied by its type.
	few := len(p.shown) <= t.value.Len()/2
	if !t.form.inWords() || !few || t.patches != nil {
		t.value, t.patches, t.ahead = reflect.Value{}, nil, nil
		return
	}
	t.patches = make([]patch, len(p.diffs))
	for i, d := range p.diffs {
		t.patches[i] = patch{old: d.Old, new: d.New}
		if row := p.shown[i].row; row != nil {
			t.patches[i].word = t.form.word(row)
		}
	}
}

// patchMap returns a copy of the last map with the patches made.
//
// A map costs O(N) to copy whoever does it: it is a hash table, not a tree, and what was delivered is never written to. Ahead lets
// that be done beforehand.
func (t *Table) patchMap() reflect.Value {
	ahead := t.ahead
	if t.ahead = nil; ahead == nil {
		ahead = &copied{make: t.form.mapCloner(t.value)}
	}
	m := ahead.take()
	switch t.form.keying {
	case byNamespacedName:
		makePatches(wordMap[Key](m), t.patches, func(o Object) Key { return object.KeyOf(o) })
	case byUID:
		makePatches(wordMap[types.UID](m), t.patches, func(o Object) types.UID { return o.GetUID() })
	default:
		makePatches(wordMap[string](m), t.patches, t.form.stringKey)
	}
	if m.Len() != t.Len() {
		return t.buildMap() // some rows have one key, or had: what it is then hangs on all of them
	}
	return m
}

func makePatches[K comparable](m map[K]unsafe.Pointer, patches []patch, keyOf func(Object) K) {
	for _, p := range patches { // first: one that is added may have the key of one that is gone
		if p.old != nil {
			delete(m, keyOf(p.old))
		}
	}
	for _, p := range patches {
		if p.new != nil {
			m[keyOf(p.new)] = p.word
		}
	}
}

// mapCloner copies a map as the runtime does, in whole groups, without hashing any key again.
func (f *form) mapCloner(m reflect.Value) func() reflect.Value {
	return func() reflect.Value {
		switch f.keying {
		case byNamespacedName:
			return cloned[Key](f, m)
		case byUID:
			return cloned[types.UID](f, m)
		default:
			return cloned[string](f, m)
		}
	}
}

func cloned[K comparable](f *form, m reflect.Value) reflect.Value {
	clone := maps.Clone(wordMap[K](m))
	return reflect.NewAt(f.typ, unsafe.Pointer(&clone)).Elem()
}

// buildMap makes the map of a map field. One key is reused for all rows, so that reflection does not box each.
func (t *Table) buildMap() reflect.Value {
	m := reflect.MakeMapWithSize(t.form.typ, t.Len())
	key := reflect.New(t.form.typ.Key())
	for i := t.Len() - 1; i >= 0; i-- { // backwards: the first of equal keys is written last
		t.form.setKey(key.Interface(), t.source(i))
		m.SetMapIndex(key.Elem(), t.elems.Index(i))
	}
	return m
}

// setKey stores the object's key in the map to where p points.
func (f *form) setKey(p any, o Object) {
	switch p := p.(type) {
	case *Key:
		*p = object.KeyOf(o)
	case *types.UID:
		*p = o.GetUID()
	case *string:
		*p = f.stringKey(o)
	}
}

// stringKey is the object's key in a map[string]T.
func (f *form) stringKey(o Object) string {
	key := object.KeyOf(o)
	if f.spansNamespaces && key.Namespace != "" {
		return key.Namespace + "/" + key.Name
	}
	return key.Name
}
