// Package footprint estimates how much memory Go values take: strings, slices, maps, structs and
// what they point to.
//
// Unsafe: the bytes of a string have no other address, and texts that share memory count once.
package footprint

import (
	"reflect"
	"time"
	"unsafe"
)

// Of returns an estimate of the bytes that some values take together. What several of them share
// counts once: a pointer, a map, the bytes of a slice or a string that begin at one address.
// Channels and functions count as their pointers. It reads the values, as they are: nobody writes
// to them meanwhile.
func Of[T any](values ...T) int64 {
	s := sizer{seen: make(map[unsafe.Pointer]bool)}
	var n int64
	for i := range values {
		n += s.beneath(reflect.ValueOf(&values[i]).Elem())
	}
	return n
}

// zone is what a time refers to. Package time shares one among all times and fills that of
// time.Local at its first use: it is not part of a value, and may not be read.
var zone = reflect.TypeFor[*time.Location]()

type sizer struct{ seen map[unsafe.Pointer]bool }

// first reports whether something at an address is met for the first time.
func (s *sizer) first(p unsafe.Pointer) bool {
	if p == nil || s.seen[p] {
		return false
	}
	s.seen[p] = true
	return true
}

// beneath returns the bytes that a value refers to, without those of the value itself.
func (s *sizer) beneath(v reflect.Value) (n int64) {
	switch v.Kind() {
	case reflect.String:
		if p := unsafe.StringData(v.String()); v.Len() > 0 && s.first(unsafe.Pointer(p)) {
			return allocated(int64(v.Len()))
		}
	case reflect.Pointer:
		if v.Type() != zone && s.first(v.UnsafePointer()) {
			return allocated(int64(v.Type().Elem().Size())) + s.beneath(v.Elem())
		}
	case reflect.Interface:
		if v.IsNil() {
			return 0
		}
		e := v.Elem()
		if !direct(e.Kind()) { // the interface points to a copy of the value
			n = allocated(int64(e.Type().Size()))
		}
		return n + s.beneath(e)
	case reflect.Slice:
		if v.Cap() == 0 || !s.first(v.UnsafePointer()) {
			return 0
		}
		n = allocated(int64(v.Cap()) * int64(v.Type().Elem().Size()))
		return n + s.elements(v)
	case reflect.Array:
		return s.elements(v)
	case reflect.Struct:
		for i := range v.NumField() {
			n += s.beneath(v.Field(i))
		}
		return n
	case reflect.Map:
		return s.ofMap(v)
	}
	return 0
}

// elements returns what the elements of a slice or an array refer to.
func (s *sizer) elements(v reflect.Value) (n int64) {
	if flat(v.Type().Elem().Kind()) {
		return 0
	}
	for i := range v.Len() {
		n += s.beneath(v.Index(i))
	}
	return n
}

// ofMap returns the bytes of a map. Go's maps have groups of 8 slots, each with a byte of control,
// and are full to 7/8 at most: small ones have one group.
func (s *sizer) ofMap(v reflect.Value) (n int64) {
	if v.IsNil() || !s.first(v.UnsafePointer()) {
		return 0
	}
	const header, slots = 48, 8
	slot := int64(v.Type().Key().Size() + v.Type().Elem().Size())
	room := int64(slots)
	for room < int64(v.Len())*8/7 {
		room *= 2
	}
	n = header + allocated(room*slot+room)
	for it := v.MapRange(); it.Next(); {
		n += s.beneath(it.Key()) + s.beneath(it.Value())
	}
	return n
}

// direct reports whether an interface holds a value of this kind in its own word.
func direct(k reflect.Kind) bool {
	switch k {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Bool, reflect.Int8, reflect.Uint8:
		return true
	}
	return false
}

// flat reports whether values of this kind refer to nothing.
func flat(k reflect.Kind) bool {
	return k <= reflect.Complex128
}

// allocated rounds up to what the allocator gives, roughly: its classes are an eighth apart.
func allocated(n int64) int64 {
	switch {
	case n <= 8:
		return (n + 7) &^ 7
	case n <= 128:
		return (n + 15) &^ 15
	}
	return (n + n/16 + 15) &^ 15
}
