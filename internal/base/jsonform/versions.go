package jsonform

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// byMethods converts between two versions of a kind by the methods that conversion webhooks of
// controller-runtime use: ConvertTo and ConvertFrom of a version, whose argument is the hub, the
// version with a method Hub. It finds them by name. It returns false if there are none.
func byMethods(scheme *runtime.Scheme, src, dst runtime.Object) (bool, error) {
	if u, ok := src.(*unstructured.Unstructured); ok {
		typed, err := typedIn(scheme, u)
		if typed == nil || err != nil {
			return false, err
		}
		src = typed
	}
	if done, err := callConversion(src, "ConvertTo", dst); done {
		return true, err
	}
	if done, err := callConversion(dst, "ConvertFrom", src); done {
		return true, err
	}
	hub := hubOf(scheme, dst)
	if hub == nil {
		return false, nil
	}
	done, err := callConversion(src, "ConvertTo", hub)
	if !done || err != nil {
		return done, err
	}
	return callConversion(dst, "ConvertFrom", hub)
}

// callConversion calls on.method(with), if on has a method of that name for it.
func callConversion(on runtime.Object, method string, with runtime.Object) (bool, error) {
	f, arg := reflect.ValueOf(on).MethodByName(method), reflect.ValueOf(with)
	if !f.IsValid() || f.Type().NumIn() != 1 || f.Type().NumOut() != 1 || f.Type().Out(0) != reflect.TypeFor[error]() ||
		f.Type().In(0).Kind() != reflect.Interface || !arg.Type().Implements(f.Type().In(0)) {
		return false, nil
	}
	err, _ := f.Call([]reflect.Value{arg})[0].Interface().(error)
	return true, err
}

// hubOf returns a new object of the hub of an object's kind, nil if the scheme has none.
func hubOf(scheme *runtime.Scheme, o runtime.Object) runtime.Object {
	kind, ok := registered(scheme, o)
	if !ok {
		return nil
	}
	for _, gv := range scheme.PrioritizedVersionsForGroup(kind.Group) {
		version, err := scheme.New(gv.WithKind(kind.Kind))
		if err == nil && reflect.ValueOf(version).MethodByName("Hub").IsValid() {
			return version
		}
	}
	return nil
}

// registered returns the kind that a Go type is registered for.
func registered(scheme *runtime.Scheme, o runtime.Object) (kind schema.GroupVersionKind, ok bool) {
	if _, untyped := o.(runtime.Unstructured); untyped {
		kind = o.GetObjectKind().GroupVersionKind()
		return kind, kind.Kind != ""
	}
	kinds, _, err := scheme.ObjectKinds(o)
	if err != nil || len(kinds) == 0 {
		return kind, false
	}
	return kinds[0], true
}

// typedIn decodes an object into the Go type that the scheme has for its kind; nil if it has none.
func typedIn(scheme *runtime.Scheme, u *unstructured.Unstructured) (runtime.Object, error) {
	typed, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, nil // not registered
	}
	if err := Fill(typed, u); err != nil {
		return nil, fmt.Errorf("decode %s as %T: %w", Describe(u), typed, undecoded(u.Object, reflect.TypeOf(typed), err))
	}
	return typed, nil
}

// byJSON converts by field names. Between two versions of a kind every field must arrive. Within
// one version dst may have fewer fields, as a client's type may.
func byJSON(scheme *runtime.Scheme, src, dst runtime.Object) error {
	u, err := ToUnstructured(scheme, src)
	if err != nil {
		return err
	}
	if err := Fill(dst, u); err != nil {
		return err
	}
	from := u.GroupVersionKind()
	to, ok := registered(scheme, dst)
	if !ok || from.GroupKind() != to.GroupKind() || from == to {
		return nil
	}
	arrived, err := ToUnstructured(scheme, dst)
	if err != nil {
		return err
	}
	if path := missing(u.Object, arrived.Object, ""); path != "" {
		return fmt.Errorf("there is no conversion from %s to %s, and %s has no field for %s",
			from.GroupVersion(), to.GroupVersion(), to.GroupVersion(), path)
	}
	return nil
}

// missing returns the path of a value in from that to lacks; "" if there is none. Zero values
// count as there.
func missing(from, to any, path string) string {
	switch from := from.(type) {
	case map[string]any:
		to, _ := to.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(from)) {
			if lost := missing(from[name], to[name], path+"."+name); lost != "" {
				return lost
			}
		}
	case []any:
		to, _ := to.([]any)
		for i, element := range from {
			if i >= len(to) {
				return fmt.Sprintf("%s[%d]", path, i)
			}
			if lost := missing(element, to[i], fmt.Sprintf("%s[%d]", path, i)); lost != "" {
				return lost
			}
		}
	default:
		if to == nil && from != nil && !reflect.ValueOf(from).IsZero() {
			return path
		}
	}
	return ""
}
