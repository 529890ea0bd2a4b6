package compile

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// converterTo makes a T of objects.
type converterTo[T any] struct {
	binding *snapshot.Binding // nil for an interface, which an object has or has not
	err     error             // no object is a T
}

// Elements is a snapshot of one query.
type Elements[T any] struct{ Objects []T }

func newConverter[T any]() (c converterTo[T]) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		return c
	}
	if c.binding, c.err = BindingOf[T](); c.err != nil {
		c.err = fmt.Errorf("no object is a %s: %w", t, c.err)
	}
	return c
}

// BindingOf returns the binding of [Elements].
func BindingOf[T any]() (*snapshot.Binding, error) {
	return snapshot.Compile(reflect.TypeFor[Elements[T]](), []snapshot.Query{{Name: "Objects"}})
}

func (c converterTo[T]) of(o objects.Object) (value T, err error) {
	if value, ok := any(o).(T); ok {
		return value, nil
	}
	switch {
	case c.err != nil:
		return value, c.err
	case c.binding == nil:
		return value, fmt.Errorf("it is a %T, and no %s", o, objects.TypeName(reflect.TypeFor[T]()))
	}
	converted, err := c.binding.Convert(0, o)
	if err != nil {
		return value, err
	}
	return converted.(T), nil
}

// orNil is of, for an object that may be nil.
func (c converterTo[T]) orNil(o objects.Object) (value T, err error) {
	if o == nil {
		return value, nil
	}
	return c.of(o)
}

// Ref says that objects of one query name objects of another.
type Ref struct {
	ref   query.Ref
	takes reflect.Type // what its function takes
	err   error        // why the reference makes no sense, if it does not
}

// RefsOf returns the reference of a query to the objects of another one, by a function that takes
// a T.
func RefsOf[T any](queryName string, names func(T) []objects.Key) Ref {
	r := Ref{ref: query.Ref{Query: queryName}, takes: reflect.TypeFor[T]()}
	if names == nil {
		r.err = errors.New("its function is nil")
		return r
	}
	as := newConverter[T]()
	r.err = as.err
	r.ref.Names = func(o objects.Object) ([]objects.Key, error) {
		elem, err := as.of(o)
		if err != nil {
			return nil, err
		}
		return names(elem), nil
	}
	return r
}

// refs returns a query's references in the engine's form.
func (w *Wanted) refs() ([]query.Ref, error) {
	if w.Refs == nil {
		return nil, nil
	}
	if w.Namespace != "" || w.Namespaces != nil || w.NamespaceSelector != "" || w.AnyOf != nil {
		return nil, errors.New("its Refs say which objects are watched: it has no namespaces and no AnyOf besides")
	}
	if len(w.Refs) == 0 {
		return nil, errors.New("its Refs are empty, so nothing could be named: leave them out to watch everything")
	}
	all := make([]query.Ref, len(w.Refs))
	for i, r := range w.Refs {
		switch {
		case r.err != nil:
			return nil, fmt.Errorf("its reference %d, of %q: %w", i, r.ref.Query, r.err)
		case r.ref.Names == nil:
			return nil, fmt.Errorf("its reference %d is empty: use RefsOf", i)
		}
		all[i] = r.ref
		all[i].Takes = bareType(r.takes)
	}
	return all, nil
}
