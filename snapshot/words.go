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
