package tables

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/words"
	"github.com/kates-go/kates/internal/object"
)

// outdate records that the last delivered map is out of date. It keeps the changes if the next
// map will be a copy with patches, and nothing if it will be built from all rows.
func (t *Table) outdate(p *plan) {
	if !t.value.IsValid() {
		return
	}
	// Only one-word values can be put into a map without a copy by their type.
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
// The copy costs O(N): a Go map is a hash table, not a tree, and a delivered map is never written
// to. Ahead can make the copy in advance.
func (t *Table) patchMap() reflect.Value {
	ahead := t.ahead
	if t.ahead = nil; ahead == nil {
		ahead = &copied{make: t.form.mapCloner(t.value)}
	}
	m := ahead.take()
	switch t.form.keying {
	case byNamespacedName:
		makePatches(words.Map[Key](m), t.patches, func(o Object) Key { return object.KeyOf(o) })
	case byUID:
		makePatches(words.Map[types.UID](m), t.patches, func(o Object) types.UID { return o.GetUID() })
	default:
		makePatches(words.Map[string](m), t.patches, t.form.stringKey)
	}
	if m.Len() != t.Len() {
		// rows share a key, before or after: its value then depends on all of them
		return t.buildMap()
	}
	return m
}

func makePatches[K comparable](m map[K]words.Word, patches []patch, keyOf func(Object) K) {
	for _, p := range patches { // deletions first: an added row may have the key of a deleted one
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

// mapCloner copies a map.
func (f *Form) mapCloner(m reflect.Value) func() reflect.Value {
	return func() reflect.Value {
		switch f.keying {
		case byNamespacedName:
			return words.CloneMap[Key](m)
		case byUID:
			return words.CloneMap[types.UID](m)
		default:
			return words.CloneMap[string](m)
		}
	}
}

// buildMap builds the map of a map field from all rows. It reuses one key for all rows, so that
// reflection does not allocate for each.
func (t *Table) buildMap() reflect.Value {
	m := reflect.MakeMapWithSize(t.form.typ, t.Len())
	key := reflect.New(t.form.typ.Key())
	// backwards, so that the first of equal keys is written last
	for i := t.Len() - 1; i >= 0; i-- {
		t.form.setKey(key.Interface(), t.source(i))
		m.SetMapIndex(key.Elem(), t.elems.Index(i))
	}
	return m
}

// setKey stores the object's map key in *p.
func (f *Form) setKey(p any, o Object) {
	switch p := p.(type) {
	case *Key:
		*p = object.KeyOf(o)
	case *types.UID:
		*p = o.GetUID()
	case *string:
		*p = f.stringKey(o)
	}
}

// stringKey returns the object's key in a map[string]T.
func (f *Form) stringKey(o Object) string {
	key := object.KeyOf(o)
	if !f.spansNamespaces {
		return key.Name
	}
	return object.Path(key.Namespace, key.Name)
}
