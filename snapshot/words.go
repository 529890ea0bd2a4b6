package snapshot

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Elements that are pointers or maps are one word each in memory: a pointer. Slices and maps of them can be worked on as
// slices and maps of unsafe.Pointer, whatever they point to: without a call of reflect, or an allocation, for each of
// them. To the garbage collector they are the same.

// inWords reports whether the elements are one word each.
func (f *form) inWords() bool {
	return f.elem.Kind() == reflect.Pointer || f.elem.Kind() == reflect.Map
}

// word returns a row's value as one. It panics if that is of another type than the elements.
func (f *form) word(r *Row) unsafe.Pointer {
	v := reflect.ValueOf(r.Value)
	if !v.Type().AssignableTo(f.elem) {
		panic(fmt.Sprintf("snapshot: a value of type %v for a field of %v", v.Type(), f.elem))
	}
	return v.UnsafePointer()
}

// words returns a slice's elements: the same memory.
func words(slice reflect.Value) []unsafe.Pointer {
	return unsafe.Slice((*unsafe.Pointer)(slice.UnsafePointer()), slice.Len())
}

// object returns the object that a word points to, as reflect and a type assertion would, in a tenth of the time: an
// interface value is what says the type, here that of none, and the pointer.
func (f *form) object(word unsafe.Pointer) Object {
	o := f.none
	(*[2]unsafe.Pointer)(unsafe.Pointer(&o))[1] = word
	return o
}

// wordMap returns a map[K]*T, or map[K]map[string]any, as a map of words: the same map. How a map lies in memory depends on
// its keys, which are of the very type, and on the size and alignment of its elements.
func wordMap[K comparable](m reflect.Value) map[K]unsafe.Pointer {
	p := m.UnsafePointer()
	return *(*map[K]unsafe.Pointer)(unsafe.Pointer(&p))
}
