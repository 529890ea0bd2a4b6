package derive

import "reflect"

// Option is an option of a node whose values are of type V.
type Option[V any] func(*options[V])

type options[V any] struct{ equal func(a, b V) bool }

// Equal sets when two values of a node count as the same. A result that equals the last one is
// dropped, and nothing that reads the entry runs. The function must tell apart whatever a reader
// of the value uses.
//
// Without this option values are equal by their method Equal(V) bool, if they have one. Numbers,
// strings, bools, and arrays and structs of these are compared by ==. All other values are
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
	t := reflect.TypeFor[V]()
	switch _, has := any(*new(V)).(interface{ Equal(other V) bool }); {
	case has && t.Kind() == reflect.Pointer:
		return func(a, b V) bool {
			if reflect.ValueOf(a).IsNil() || reflect.ValueOf(b).IsNil() {
				return any(a) == any(b)
			}
			return any(a).(interface{ Equal(other V) bool }).Equal(b)
		}
	case has:
		return func(a, b V) bool { return any(a).(interface{ Equal(other V) bool }).Equal(b) }
	case isPlain(t):
		return func(a, b V) bool { return any(a) == any(b) }
	}
	return func(a, b V) bool { return reflect.DeepEqual(a, b) }
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
