package kates

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/snapshot"
)

// KeyOf returns a [Query.Key] from a function that takes a T, whatever the Go type of the objects
// that the watch holds: T is whatever the elements of a slice may be (see [Client.Watch]).
//
//	kates.Query{Name: "Pods", Key: kates.KeyOf(func(p *corev1.Pod) []string {
//	    return []string{p.Spec.NodeName}
//	})}
//
// An object of another type is converted, once per version. One that does not decode as a T is
// left out as [Invalid]. The function must not write to its argument.
func KeyOf[T any](f func(T) []string) func(Object) []string {
	as := newConverter[T]()
	return func(o Object) []string {
		value, err := as.of(o)
		if err != nil {
			panic(fmt.Errorf("key: %w", err)) // the object counts as invalid
		}
		return f(value)
	}
}

// SignalOf returns a [Query.Signal] from a function that takes T's, as [KeyOf] does for a Key. T
// is a pointer, a map or an interface: nil stands for an object that is new, or has left. Each
// change converts both objects if the watch holds another type. A change of an object that does
// not decode as a T is worth a signal.
func SignalOf[T any](f func(old, current T) bool) func(old, current Object) bool {
	as := newConverter[T]()
	return func(old, current Object) bool {
		before, err := as.orNil(old)
		after, err2 := as.orNil(current)
		return err != nil || err2 != nil || f(before, after)
	}
}

// TransformOf returns a [Query.Transform] from a function that changes a T, as [KeyOf] does for a
// Key. T is a pointer to a struct, an interface, or map[string]any. If the watch holds another
// type, the object is converted to a T and back. What T has no field for is lost then, so T is the
// kind's own type, *[Unstructured], or map[string]any.
//
// Each call returns another function. Keep it in a variable: queries that share a watch need the
// same one. An object that does not decode as a T is left out as [Invalid].
func TransformOf[T any](f func(T) error) func(Object) error {
	as := newConverter[T]()
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
	default:
		as.err = fmt.Errorf("a transform changes a pointer, a map or an interface: %s is a copy", t)
	}
	return func(o Object) error {
		value, err := as.of(o)
		if err != nil {
			return err
		}
		if err := f(value); err != nil {
			return err
		}
		if _, same := any(o).(T); same {
			return nil
		}
		return putBack(o, value)
	}
}

// putBack gives an object the content of a value that was made of it.
func putBack(o Object, value any) error {
	content, ok := value.(map[string]any)
	if !ok {
		var err error
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(value); err != nil {
			return err
		}
	}
	if u, ok := o.(*Unstructured); ok {
		u.Object = content
		return nil
	}
	fresh := reflect.New(reflect.TypeOf(o).Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, fresh.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().Set(fresh.Elem())
	return nil
}

// converterTo makes a T of objects.
type converterTo[T any] struct {
	binding *snapshot.Binding // nil for an interface, which an object has or has not
	err     error             // no object is a T
}

// elements is a snapshot of one query.
type elements[T any] struct{ Objects []T }

func newConverter[T any]() (c converterTo[T]) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		return c
	}
	if c.binding, c.err = elementsOf[T](); c.err != nil {
		c.err = fmt.Errorf("no object is a %s: %w", t, c.err)
	}
	return c
}

func elementsOf[T any]() (*snapshot.Binding, error) {
	return snapshot.Compile(reflect.TypeFor[elements[T]](), []snapshot.Query{{Name: "Objects"}})
}

func (c converterTo[T]) of(o Object) (value T, err error) {
	if value, ok := any(o).(T); ok {
		return value, nil
	}
	switch {
	case c.err != nil:
		return value, c.err
	case c.binding == nil:
		return value, fmt.Errorf("it is a %T, and no %s", o, reflect.TypeFor[T]())
	}
	converted, err := c.binding.Convert(0, o)
	if err != nil {
		return value, err
	}
	return converted.(T), nil
}

// orNil is of, for an object that may be nil.
func (c converterTo[T]) orNil(o Object) (value T, err error) {
	if o == nil {
		return value, nil
	}
	return c.of(o)
}
