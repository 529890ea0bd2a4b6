package derive

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// From is the key of an entry that [FlatMap] made: the key of the input, and the key that the
// function gave. Two inputs can give the same key without a collision.
type From[K, J comparable] struct {
	From K
	Key  J
}

// orderOf returns the order of a type of keys: by its method Compare, else by value, and field by
// field.
func orderOf[K comparable]() (func(a, b K) int, error) {
	var f any
	switch any(*new(K)).(type) {
	case string:
		f = cmp.Compare[string]
	case int:
		f = cmp.Compare[int]
	case types.NamespacedName:
		f = compareNames
	case interface{ Compare(other K) int }:
		f = func(a, b K) int { return any(a).(interface{ Compare(other K) int }).Compare(b) }
	default:
		t := reflect.TypeFor[K]()
		if err := hasOrder(t); err != nil {
			return nil, err
		}
		f = func(a, b K) int { return compareValues(reflect.ValueOf(a), reflect.ValueOf(b)) }
	}
	return f.(func(a, b K) int), nil
}

// fromOrder returns the order of the keys of a [FlatMap]: that of the inputs, then that of the
// keys that its function gives.
func fromOrder[K, J comparable](inputs func(a, b K) int) (func(a, b From[K, J]) int, error) {
	compare, err := orderOf[J]()
	return func(a, b From[K, J]) int {
		if c := inputs(a.From, b.From); c != 0 {
			return c
		}
		return compare(a.Key, b.Key)
	}, err
}

func compareNames(a, b types.NamespacedName) int {
	if a.Namespace != b.Namespace {
		return strings.Compare(a.Namespace, b.Namespace)
	}
	return strings.Compare(a.Name, b.Name)
}

// hasOrder is an error for a type whose values have no order that is the same in each process.
func hasOrder(t reflect.Type) error {
	switch k := t.Kind(); {
	case k == reflect.Bool, k == reflect.String, reflect.Int <= k && k <= reflect.Uintptr:
		return nil
	case k == reflect.Array:
		return hasOrder(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if err := hasOrder(t.Field(i).Type); err != nil {
				return fmt.Errorf("field %s: %w", t.Field(i).Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("%v has no order: a key is a string, an integer, a bool, an array or a struct of these, or has a method Compare", t)
}

func compareValues(a, b reflect.Value) int {
	switch k := a.Kind(); {
	case k == reflect.String:
		return cmp.Compare(a.String(), b.String())
	case k == reflect.Bool:
		return cmp.Compare(oneIf(a.Bool()), oneIf(b.Bool()))
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanUint():
		return cmp.Compare(a.Uint(), b.Uint())
	case k == reflect.Array:
		for i := range a.Len() {
			if c := compareValues(a.Index(i), b.Index(i)); c != 0 {
				return c
			}
		}
	case k == reflect.Struct:
		for i := range a.NumField() {
			if c := compareValues(a.Field(i), b.Field(i)); c != 0 {
				return c
			}
		}
	}
	return 0
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keyText writes a key as [Graph.Explain] takes it: the parts of a key with slashes between them.
// It calls no method of the key.
func keyText(key any) string {
	switch k := key.(type) {
	case string:
		return k
	case types.NamespacedName:
		return k.Namespace + "/" + k.Name
	}
	var parts []string
	appendParts(&parts, reflect.ValueOf(key))
	return strings.Join(parts, "/")
}

func appendParts(parts *[]string, v reflect.Value) {
	switch k := v.Kind(); {
	case k == reflect.String:
		*parts = append(*parts, v.String())
	case k == reflect.Bool:
		*parts = append(*parts, strconv.FormatBool(v.Bool()))
	case v.CanInt():
		*parts = append(*parts, strconv.FormatInt(v.Int(), 10))
	case v.CanUint():
		*parts = append(*parts, strconv.FormatUint(v.Uint(), 10))
	case v.CanFloat():
		*parts = append(*parts, strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case k == reflect.Array:
		for i := range v.Len() {
			appendParts(parts, v.Index(i))
		}
	case k == reflect.Struct:
		for i := range v.NumField() {
			appendParts(parts, v.Field(i))
		}
	case (k == reflect.Pointer || k == reflect.Interface) && !v.IsNil():
		appendParts(parts, v.Elem())
	default:
		*parts = append(*parts, v.Type().String())
	}
}

// Option is an option of a node whose values are of type V.
type Option[V any] func(*options[V])

type options[V any] struct{ equal func(a, b V) bool }

// Equal sets when two values of a node count as the same. A result that equals the last one is
// dropped, and nothing that reads the entry runs. The function must tell apart whatever a reader
// of the value uses.
//
// Without this option values are equal by the method Equal(V) bool of their type V, which may be
// an interface, if V has one. It is not called if one of them is nil, or is a pointer that is nil.
// Numbers, strings, bools, and arrays and structs of these are compared by ==. All other values are
// compared by [reflect.DeepEqual], for which a function and a NaN equal nothing: a program that
// returns these does work for nothing, shows nothing wrong, and cannot be verified.
func Equal[V any](equal func(a, b V) bool) Option[V] {
	return func(o *options[V]) { o.equal = equal }
}

func equalOf[V any](given []Option[V]) func(a, b V) bool {
	var o options[V]
	for _, set := range given {
		set(&o)
	}
	if o.equal != nil {
		return o.equal
	}
	type comparer interface{ Equal(other V) bool }
	t := reflect.TypeFor[V]()
	switch {
	case t.Implements(reflect.TypeFor[comparer]()):
		return func(a, b V) bool {
			if isNilPointer(a) || isNilPointer(b) {
				return any(a) == any(b)
			}
			return any(a).(comparer).Equal(b)
		}
	case isPlain(t):
		return func(a, b V) bool { return any(a) == any(b) }
	}
	return func(a, b V) bool { return reflect.DeepEqual(a, b) }
}

// isNilPointer tells whether a value is a pointer that is nil, or an interface without a value.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}

// sameOf tells whether an element of a list of the snapshot is the one it was. A pointer is the
// same if it points to the same object: what is delivered is not written to (G10).
func sameOf[T any]() func(a, b T) bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer:
		return func(a, b T) bool { return any(a) == any(b) }
	case reflect.Map:
		return func(a, b T) bool {
			return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
		}
	}
	return equalOf[T](nil)
}

// isPlain tells whether == compares the whole value: there is no pointer in it.
func isPlain(t reflect.Type) bool {
	switch k := t.Kind(); {
	case reflect.Bool <= k && k <= reflect.Complex128, k == reflect.String:
		return true
	case k == reflect.Array:
		return isPlain(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}
