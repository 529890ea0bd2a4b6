package kates

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
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
// left out as [Invalid]. If T is an API type and the field is of another kind, Watch returns an
// error. The function must not write to its argument.
func KeyOf[T any](f func(T) []string) func(Object) []string {
	if f == nil {
		return noKey
	}
	as := newConverter[T]()
	return keyTaking(reflect.TypeFor[T](), func(o Object) []string {
		value, err := as.of(o)
		if err != nil {
			panic(fmt.Errorf("key: %w", err)) // the object counts as invalid
		}
		return f(value)
	})
}

// SignalOf returns a [Query.Signal] from a function that takes T's, as [KeyOf] does for a Key. T
// is a pointer, a map or an interface: nil stands for an object that is new, or has left. Each
// change converts both objects if the watch holds another type. A change of an object that does
// not decode as a T is worth a signal. An API type of another kind than the field's is an error of
// Watch.
func SignalOf[T any](f func(old, current T) bool) func(old, current Object) bool {
	if f == nil {
		return noSignal
	}
	as := newConverter[T]()
	return signalTaking(reflect.TypeFor[T](), func(old, current Object) bool {
		before, err := as.orNil(old)
		after, err2 := as.orNil(current)
		return err != nil || err2 != nil || f(before, after)
	})
}

// TransformOf returns a [Query.Transform] from a function that changes a T, as [KeyOf] does for a
// Key. T is a pointer to a struct, an interface, or map[string]any. If the watch holds another
// type, the object is converted to a T and back. What T has no field for is lost then, so T is the
// kind's own type, *[Unstructured], or map[string]any.
//
// Each call returns another function. Keep it in a variable: queries that share a watch need the
// same one. An object that does not decode as a T is left out as [Invalid]. An API type of another
// kind than the field's is an error of Watch.
func TransformOf[T any](f func(T) error) func(Object) error {
	if f == nil {
		return noTransform
	}
	as := newConverter[T]()
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
	default:
		as.err = fmt.Errorf("a transform changes a pointer, a map or an interface: %s is a copy", t)
	}
	return transformTaking(reflect.TypeFor[T](), func(o Object) error {
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
	})
}

// errNilFunction is the error of a query whose function was made of a nil one.
var errNilFunction = errors.New("it was made of a function that is nil")

// noKey, noSignal and noTransform stand for functions that were made of nil ones: a query with
// them is refused, see [Query.checkFunctions].
func noKey(Object) []string             { panic(errNilFunction) }
func noSignal(old, current Object) bool { panic(errNilFunction) }
func noTransform(Object) error          { return errNilFunction }

// sameCode reports whether two functions are one and the same, or closures of the same code.
func sameCode(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

// checkFunctions returns an error if a function of the query was made of a nil one.
func (q Query) checkFunctions() error {
	for _, f := range []struct {
		name         string
		is, disabled any
	}{{"Key", q.Key, noKey}, {"Signal", q.Signal, noSignal}, {"Transform", q.Transform, noTransform}} {
		if sameCode(f.is, f.disabled) {
			return fmt.Errorf("its %s makes no sense: %w", f.name, errNilFunction)
		}
	}
	return nil
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
		return value, fmt.Errorf("it is a %T, and no %s", o, objects.TypeName(reflect.TypeFor[T]()))
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

// Ref says that objects of one query name objects of another. See [RefsOf].
type Ref struct {
	ref   query.Ref
	takes reflect.Type // what its function takes
	err   error        // why it makes no sense, if it does not
}

// RefsOf returns an element of [Query.Refs]: the objects that the objects of another query name.
// The other query is that of the field named query. T is the type that the function takes:
// whatever the elements of a slice may be (see [Client.Watch]), best that of the field, or
// [Object] for whatever the watch holds. An API type of another kind than that field's is an error
// of Watch.
//
//	kates.Query{Name: "Secrets", Refs: []kates.Ref{
//	    kates.RefsOf("Ingresses", func(in *networkingv1.Ingress) (names []types.NamespacedName) {
//	        for _, tls := range in.Spec.TLS {
//	            names = append(names, types.NamespacedName{Name: tls.SecretName})
//	        }
//	        return names
//	    }),
//	}}
//
// A name without a namespace is in the namespace of the object that names it, unless the named
// kind has none. A reference without a name is ignored. A name that no object can have is absent:
// the named kind has namespaces, but neither the reference nor the object has one.
//
// The function is called once per version of an object, never twice at a time, without locks. It
// must not write to the object, and its result must depend only on the object. If it panics, or
// the object does not decode as a T, the object's former names stay, and the failure is logged.
func RefsOf[T any](queryName string, names func(T) []types.NamespacedName) Ref {
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

// refs returns a query's references in the accumulator's form.
func (q Query) refs() (all []query.Ref, err error) {
	if q.Refs == nil {
		return nil, nil
	}
	if q.Namespace != "" || q.Namespaces != nil || q.NamespaceSelector != "" || q.AnyOf != nil {
		return nil, errors.New("its Refs say which objects are watched: it has no namespaces and no AnyOf besides")
	}
	if len(q.Refs) == 0 {
		return nil, errors.New("its Refs are empty, so nothing could be named: leave them out to watch everything")
	}
	all = make([]query.Ref, len(q.Refs))
	for i, r := range q.Refs {
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

// A question is given to the functions of a query that [KeyOf] and the like have made, in place of
// an object: they answer which type the user's function takes, and do not call it. Other functions
// of this package answer which fields they need, see [needs].
type question struct {
	Unstructured
	takes reflect.Type
	needs []project.Path // of the fields that the function reads
	whole bool           // nobody knows what it reads
}

// answers reports whether an object is a question, and answers it.
func answers(o Object, t reflect.Type) bool {
	q, ok := o.(*question)
	if ok {
		q.takes = t
	}
	return ok
}

// keyTaking, signalTaking and transformTaking make functions that answer a question. They are
// neither generic nor inlined, so what one of them makes is known by its code: see [sameCode].
//
//go:noinline
func keyTaking(t reflect.Type, f func(Object) []string) func(Object) []string {
	return func(o Object) []string {
		if answers(o, t) {
			return nil
		}
		return f(o)
	}
}

//go:noinline
func signalTaking(t reflect.Type, f func(old, current Object) bool) func(old, current Object) bool {
	return func(old, current Object) bool {
		if answers(current, t) {
			return true
		}
		return f(old, current)
	}
}

//go:noinline
func transformTaking(t reflect.Type, f func(Object) error) func(Object) error {
	return func(o Object) error {
		if answers(o, t) {
			return nil
		}
		return f(o)
	}
}

// function is one of a query's functions, and what the user's takes where [KeyOf] and the like
// have made it; nil for all others.
type function struct {
	name  string
	is    bool
	takes reflect.Type
}

// functions returns the functions that get the query's objects.
func (q Query) functions() []function {
	all := []function{{name: "Key", is: q.Key != nil}, {name: "Signal", is: q.Signal != nil}, {name: "Transform", is: q.Transform != nil}}
	for i, f := range []struct {
		is, asking any
		ask        func(*question)
	}{
		{q.Key, keyTaking(nil, nil), func(a *question) { q.Key(a) }},
		{q.Signal, signalTaking(nil, nil), func(a *question) { q.Signal(nil, a) }},
		{q.Transform, transformTaking(nil, nil), func(a *question) { _ = q.Transform(a) }},
	} {
		if sameCode(f.is, f.asking) {
			var asked question
			f.ask(&asked)
			all[i].takes = asked.takes
		}
	}
	return all
}

// checkTypes returns an error if a function of a target takes an API type of another kind than the
// one that the field's Go type fixes. A Ref's function gets the objects of the target it names.
func (c *Client) checkTypes(t target, all []target) error {
	for _, f := range t.functions() {
		if err := c.takesOther(f.takes, t); err != nil {
			return fmt.Errorf("the function of its %s %w", f.name, err)
		}
	}
	for i, r := range t.Refs {
		for _, of := range all {
			if of.Name != r.ref.Query {
				continue
			}
			if err := c.takesOther(r.takes, of); err != nil {
				return fmt.Errorf("the function of its reference %d, of %q, %w", i, of.Name, err)
			}
		}
	}
	return nil
}

// takesOther returns an error if a function's type is registered, and for no version of the kind
// of a target.
func (c *Client) takesOther(takes reflect.Type, t target) error {
	if takes == nil || t.kind.Empty() {
		return nil
	}
	elem := takes
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	kinds := c.core.KindsOf(elem)
	for _, kind := range kinds {
		if kind.GroupKind() == t.kind.GroupKind() {
			return nil
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return fmt.Errorf("takes a %s, but the objects of %q are of kind %s", takes, t.Name, t.kind.GroupKind())
}
