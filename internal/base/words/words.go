//go:build !kates_safe

package words

import (
	"maps"
	"reflect"
	"unsafe"
)

// OK reports whether the functions of this package work in this process.
var OK = works()

// Word is an element as it is in memory.
type Word = unsafe.Pointer

// Of returns a pointer or a map as a word.
func Of(v reflect.Value) Word { return v.UnsafePointer() }

// Slice returns the elements of a slice as words. It is the same memory, with the same capacity.
func Slice(v reflect.Value) []Word {
	return unsafe.Slice((*Word)(v.UnsafePointer()), v.Cap())[:v.Len()]
}

// SliceOf returns words as a slice of a type. It is the same memory.
func SliceOf(typ reflect.Type, words []Word) reflect.Value {
	return reflect.NewAt(typ, unsafe.Pointer(&words)).Elem()
}

// Map returns a map[K]*T, or map[K]map[string]any, as a map of words. It is the same map: the
// layout of a map depends on its key type, which is kept, and on the size and alignment of its
// elements.
func Map[K comparable](m reflect.Value) map[K]Word {
	p := m.UnsafePointer()
	return *(*map[K]Word)(unsafe.Pointer(&p))
}

// CloneMap copies a map as the runtime does, in whole groups, without hashing a key again.
func CloneMap[K comparable](m reflect.Value) reflect.Value {
	clone := maps.Clone(Map[K](m))
	return reflect.NewAt(m.Type(), unsafe.Pointer(&clone)).Elem()
}

// As returns the word as an interface value of the same type as none, which is a nil pointer. It
// does what reflect and a type assertion would do, in a tenth of the time: it combines the type
// word of none with the pointer.
func As[I any](none I, word Word) I {
	(*[2]Word)(unsafe.Pointer(&none))[1] = word
	return none
}

// works reports whether values that went through words are what they were.
func works() bool {
	type target struct{ n int }
	one, two := &target{1}, &target{2}
	slice := append(make([]*target, 0, 3), one)
	elements := append(Slice(reflect.ValueOf(slice)), Of(reflect.ValueOf(two)))
	again := SliceOf(reflect.TypeOf(slice), elements).Interface().([]*target)

	m := make(map[string]*target)
	for _, key := range "0123456789abcdef" {
		m[string(key)] = one
	}
	clone := CloneMap[string](reflect.ValueOf(m))
	Map[string](clone)["0"] = elements[1]
	copied := clone.Interface().(map[string]*target)

	none := any((*target)(nil))
	return unsafe.Sizeof(none) == 2*unsafe.Sizeof(one) && &again[0] == &slice[0] && again[1] == two && cap(again) == 3 &&
		len(copied) == len(m) && copied["0"] == two && copied["f"] == one && m["0"] == one && As(none, elements[1]) == any(two)
}
