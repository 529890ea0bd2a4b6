package compile

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// converterTo makes a T of objects.
type converterTo[T any] struct {
	binding *snapshot.Binding // nil for metadata, which every object has
	err     error             // no object is a T
}

// metadata is that of an object, and says nothing of the object's Go type.
type metadata struct{ metav1.Object }

// Elements is a snapshot of one query.
type Elements[T any] struct{ Objects []T }

func newConverter[T any]() (c converterTo[T]) {
	t := reflect.TypeFor[T]()
	if t == metadataType {
		return c
	}
	if c.binding, c.err = BindingOf[T](); c.err != nil {
		c.err = fmt.Errorf("no object is a %s: %w", objects.TypeName(t), c.err)
	}
	return c
}

// reads is what a function reads that takes a T. isNil: there is no function.
func (c converterTo[T]) reads(isNil bool) Reads {
	r := readsOf(reflect.TypeFor[T]())
	switch {
	case isNil:
		r.err = errNilFunction
	case r.err == nil:
		r.err = c.err
	}
	return r
}

// BindingOf returns the binding of [Elements].
func BindingOf[T any]() (*snapshot.Binding, error) {
	return snapshot.Compile(reflect.TypeFor[Elements[T]](), []snapshot.Query{{Name: "Objects"}})
}

func (c converterTo[T]) of(o objects.Object) (value T, err error) {
	switch {
	case c.err != nil:
		return value, c.err
	case c.binding == nil:
		return any(metadata{o}).(T), nil
	}
	if value, ok := any(o).(T); ok {
		return value, nil
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
	reads Reads
}

// RefsOf returns the reference of a query to the objects of another one, by a function that takes
// a T.
func RefsOf[T any](queryName string, names func(T) []objects.Key) Ref {
	as := newConverter[T]()
	r := Ref{ref: query.Ref{Query: queryName, Takes: bareType(reflect.TypeFor[T]())}, reads: as.reads(names == nil)}
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
		case r.reads.err != nil:
			return nil, fmt.Errorf("its reference %d, of %q: %w", i, r.ref.Query, r.reads.err)
		case r.ref.Names == nil:
			return nil, fmt.Errorf("its reference %d is empty: use RefsOf", i)
		}
		all[i] = r.ref
	}
	return all, nil
}
