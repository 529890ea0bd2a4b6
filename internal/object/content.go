package object

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// SameContent reports whether two objects have the same content, all of it: identity and version,
// too. It calls no method of a Go type that a user has made, so it may be called with a lock held.
//
// What different encodings of one object decode into is the same: an empty slice or map and nil, a
// moment in different time zones, and different texts of the same JSON. It is made for objects
// that were decoded. Values that refer to themselves count as different.
func SameContent(a, b Object) bool {
	if a == b {
		return true
	}
	if ua, ok := a.(*unstructured.Unstructured); ok {
		ub, ok := b.(*unstructured.Unstructured)
		return ok && sameJSON(ua.Object, ub.Object)
	}
	if pa, ok := a.(*Projected); ok {
		pb, ok := b.(*Projected)
		return ok && sameProjected(pa, pb)
	}
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	return va.IsValid() && vb.IsValid() && va.Type() == vb.Type() && comparerOf(va.Type())(va, vb, 0)
}

// sameJSON compares untyped values.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, x := range a {
			if y, has := b[key]; !has || !sameJSON(x, y) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i, x := range a {
			if !sameJSON(x, b[i]) {
				return false
			}
		}
		return true
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return reflect.DeepEqual(a, b)
}

// comparer compares two values of one type. depth counts the pointers on the way to them.
type comparer func(a, b reflect.Value, depth int) bool

// deepest is how many pointers may lead to a value. No object of the API comes near it.
const deepest = 500

// comparers are the comparers of types that have been compared. There are as many as types.
var comparers sync.Map

func comparerOf(t reflect.Type) comparer {
	if c, ok := comparers.Load(t); ok {
		return c.(comparer)
	}
	made := sync.OnceValue(func() comparer { return newComparer(t) })
	// A type may contain itself: then this one is called, and not made again.
	c, _ := comparers.LoadOrStore(t, comparer(func(a, b reflect.Value, depth int) bool { return made()(a, b, depth) }))
	return c.(comparer)
}

func newComparer(t reflect.Type) comparer {
	switch t {
	case reflect.TypeFor[time.Time]():
		return exported(sameTime, structs(t))
	case reflect.TypeFor[resource.Quantity]():
		return exported(sameQuantity, structs(t))
	case reflect.TypeFor[map[string]string]():
		return exported(sameStrings, mapComparer(t))
	case reflect.TypeFor[map[string]any]():
		return exported(sameUntyped, mapComparer(t))
	case reflect.TypeFor[json.RawMessage]():
		return sameRaw
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(a, b reflect.Value, _ int) bool { return a.Bool() == b.Bool() }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(a, b reflect.Value, _ int) bool { return a.Int() == b.Int() }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(a, b reflect.Value, _ int) bool { return a.Uint() == b.Uint() }
	case reflect.Float32, reflect.Float64:
		return func(a, b reflect.Value, _ int) bool { return a.Float() == b.Float() }
	case reflect.Complex64, reflect.Complex128:
		return func(a, b reflect.Value, _ int) bool { return a.Complex() == b.Complex() }
	case reflect.String:
		return func(a, b reflect.Value, _ int) bool { return a.String() == b.String() }
	case reflect.Struct:
		return structs(t)
	case reflect.Pointer:
		return pointers(t)
	case reflect.Interface:
		return samePacked
	case reflect.Slice:
		return sliceComparer(t)
	case reflect.Array:
		return arrays(t)
	case reflect.Map:
		return mapComparer(t)
	}
	return func(a, b reflect.Value, _ int) bool { return a.UnsafePointer() == b.UnsafePointer() }
}

// exported returns a comparer for values that may be read as they are, and another one for those
// of fields that are not exported.
func exported(same, otherwise comparer) comparer {
	return func(a, b reflect.Value, depth int) bool {
		if a.CanInterface() && b.CanInterface() {
			return same(a, b, depth)
		}
		return otherwise(a, b, depth)
	}
}

func sameTime(a, b reflect.Value, _ int) bool {
	return a.Interface().(time.Time).Equal(b.Interface().(time.Time))
}

// sameQuantity compares amounts, and how they are written.
func sameQuantity(a, b reflect.Value, _ int) bool {
	x, y := a.Interface().(resource.Quantity), b.Interface().(resource.Quantity)
	return x.Format == y.Format && x.Cmp(y) == 0
}

func sameStrings(a, b reflect.Value, _ int) bool {
	x, y := a.Interface().(map[string]string), b.Interface().(map[string]string)
	if len(x) != len(y) || a.UnsafePointer() == b.UnsafePointer() {
		return len(x) == len(y)
	}
	for key, value := range x {
		if other, has := y[key]; !has || other != value {
			return false
		}
	}
	return true
}

func sameUntyped(a, b reflect.Value, _ int) bool {
	return sameJSON(a.Interface().(map[string]any), b.Interface().(map[string]any))
}

func structs(t reflect.Type) comparer {
	type field struct {
		at   int
		same comparer
	}
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		same := comparerOf(f.Type)
		if f.Name == "Raw" && f.Type == reflect.TypeFor[[]byte]() && f.Tag.Get("json") == "-" {
			same = sameRaw // as in runtime.RawExtension
		}
		fields = append(fields, field{i, same})
	}
	return func(a, b reflect.Value, depth int) bool {
		for _, f := range fields {
			if !f.same(a.Field(f.at), b.Field(f.at), depth) {
				return false
			}
		}
		return true
	}
}

// sameRaw compares JSON that was not decoded. The answer to an own write may have it in another
// text than a list. Integers stay integers: as float64, two that differ past 2^53 could be the
// same.
func sameRaw(a, b reflect.Value, _ int) bool {
	if bytes.Equal(a.Bytes(), b.Bytes()) {
		return true
	}
	var x, y any
	return utiljson.Unmarshal(a.Bytes(), &x) == nil && utiljson.Unmarshal(b.Bytes(), &y) == nil && reflect.DeepEqual(x, y)
}

func pointers(t reflect.Type) comparer {
	same := comparerOf(t.Elem())
	return func(a, b reflect.Value, depth int) bool {
		switch {
		case a.UnsafePointer() == b.UnsafePointer():
			return true
		case a.IsNil() || b.IsNil() || depth > deepest:
			return false
		}
		return same(a.Elem(), b.Elem(), depth+1)
	}
}

// samePacked compares what interfaces hold.
func samePacked(a, b reflect.Value, depth int) bool {
	if a.IsNil() || b.IsNil() || depth > deepest {
		return a.IsNil() && b.IsNil()
	}
	a, b = a.Elem(), b.Elem()
	return a.Type() == b.Type() && comparerOf(a.Type())(a, b, depth+1)
}

func sliceComparer(t reflect.Type) comparer {
	if t.Elem().Kind() == reflect.Uint8 {
		return func(a, b reflect.Value, _ int) bool { return bytes.Equal(a.Bytes(), b.Bytes()) }
	}
	same := arrays(t)
	return func(a, b reflect.Value, depth int) bool {
		if a.Len() != b.Len() || a.UnsafePointer() == b.UnsafePointer() {
			return a.Len() == b.Len()
		}
		return depth <= deepest && same(a, b, depth+1)
	}
}

func arrays(t reflect.Type) comparer {
	same := comparerOf(t.Elem())
	return func(a, b reflect.Value, depth int) bool {
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i), depth) {
				return false
			}
		}
		return true
	}
}

func mapComparer(t reflect.Type) comparer {
	same := comparerOf(t.Elem())
	return func(a, b reflect.Value, depth int) bool {
		if a.Len() != b.Len() || a.UnsafePointer() == b.UnsafePointer() {
			return a.Len() == b.Len()
		}
		if depth > deepest {
			return false
		}
		for each := a.MapRange(); each.Next(); {
			other := b.MapIndex(each.Key())
			if !other.IsValid() || !same(each.Value(), other, depth+1) {
				return false
			}
		}
		return true
	}
}
