package snapshot

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Elements that are pointers or maps are one word each in memory: a pointer. So slices and maps
// of them can be handled as slices and maps of unsafe.Pointer, whatever they point to, without a
// reflect call or an allocation for each element. The garbage collector sees no difference.

// inWords reports whether the elements are one word each.
func (f *form) inWords() bool {
	return f.elem.Kind() == reflect.Pointer || f.elem.Kind() == reflect.Map
}

// word returns a row's value as a word. It panics if the value is not of the elements' type.
func (f *form) word(r *Row) unsafe.Pointer {
	v := reflect.ValueOf(r.Value)
	if !v.Type().AssignableTo(f.elem) {
		panic(fmt.Sprintf("snapshot: a value of type %v for a field of %v", v.Type(), f.elem))
	}
	return v.UnsafePointer()
}

// words returns a slice's elements as words. It is the same memory.
func words(slice reflect.Value) []unsafe.Pointer {
	return unsafe.Slice((*unsafe.Pointer)(slice.UnsafePointer()), slice.Len())
}

// object returns the object that a word points to. It does what reflect and a type assertion
// would do, in a tenth of the time: it combines the type word of a nil element with the pointer.
func (f *form) object(word unsafe.Pointer) Object {
	o := f.none
	(*[2]unsafe.Pointer)(unsafe.Pointer(&o))[1] = word
	return o
}

// wordMap returns a map[K]*T, or map[K]map[string]any, as a map of words. It is the same map: the
// layout of a map depends on its key type, which is kept, and on the size and alignment of its
// elements.
func wordMap[K comparable](m reflect.Value) map[K]unsafe.Pointer {
	p := m.UnsafePointer()
	return *(*map[K]unsafe.Pointer)(unsafe.Pointer(&p))
}

// Where each element is its own source object, a table needs no separate sources. That saves two
// words for each object and reader.

// own reports whether a row's value is its source object itself.
func (r *Row) own() bool {
	return any(r.Source) == r.Value
}

func allOwn(edits []edit) bool {
	for _, e := range edits {
		if e.row != nil && !e.row.own() {
			return false
		}
	}
	return true
}

// holdSources begins to hold sources separately. It is never undone: a stream delivers all of its
// objects in one form, or many in another.
func (t *Table) holdSources() {
	t.sources = make([]Object, t.Len())
	for i := range t.sources {
		t.sources[i] = t.source(i)
	}
	t.apart = true
}

// source returns the object of the i-th shown row.
func (t *Table) source(i int) Object {
	if t.apart {
		return t.sources[i]
	}
	return t.form.object(words(t.elems)[i])
}

// find searches the shown rows for a key, as seek does.
func (t *Table) find(from int, k Key) (at int, found bool) {
	if t.apart {
		return seek(t.sources, from, k, compareObject)
	}
	return seek(words(t.elems), from, k, func(word unsafe.Pointer, k Key) int {
		return compareObject(t.form.object(word), k)
	})
}
