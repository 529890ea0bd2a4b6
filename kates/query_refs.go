package kates

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/snapshot"
)

// Ref says that objects of one query name objects of another. See [RefsOf].
type Ref struct {
	ref accumulator.Ref
	err error // why it makes no sense, if it does not
}

// RefsOf returns an element of [Query.Refs]: the objects that the objects of another query name.
// The other query is that of the field named query. T is the type that the function takes:
// whatever the elements of a slice may be (see [Client.Watch]), best that of the field, or
// [Object] for whatever the watch holds.
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
func RefsOf[T any](query string, names func(T) []types.NamespacedName) Ref {
	r := Ref{ref: accumulator.Ref{Query: query}}
	if names == nil {
		r.err = errors.New("its function is nil")
		return r
	}
	t := reflect.TypeFor[T]()
	var as *snapshot.Binding
	// Names checks whether an object implements an interface
	if t.Kind() != reflect.Interface {
		if as, r.err = elementsOf[T](); r.err != nil {
			r.err = fmt.Errorf("no object is a %s: %w", t, r.err)
		}
	}
	r.ref.Names = func(o stream.Object) ([]stream.Key, error) {
		elem, ok := any(o).(T)
		switch {
		case ok:
			return names(elem), nil
		case as == nil:
			return nil, fmt.Errorf("it is a %T, and no %s", o, t)
		}
		value, err := as.Convert(0, o)
		if err != nil {
			return nil, err
		}
		return names(value.(T)), nil
	}
	return r
}

// elementsOf returns the conversion of objects to a T.
func elementsOf[T any]() (*snapshot.Binding, error) {
	type one struct{ Objects []T }
	return snapshot.Compile(reflect.TypeFor[one](), []snapshot.Query{{Name: "Objects"}})
}

// refs returns a query's references in the accumulator's form.
func (q Query) refs() (all []accumulator.Ref, err error) {
	if q.Refs == nil {
		return nil, nil
	}
	if q.Namespace != "" || q.Namespaces != nil || q.NamespaceSelector != "" || q.AnyOf != nil {
		return nil, errors.New("its Refs say which objects are watched: it has no namespaces and no AnyOf besides")
	}
	all = make([]accumulator.Ref, len(q.Refs))
	for i, r := range q.Refs {
		switch {
		case r.err != nil:
			return nil, fmt.Errorf("its reference %d, of %q: %w", i, r.ref.Query, r.err)
		case r.ref.Names == nil:
			return nil, fmt.Errorf("its reference %d is empty: use RefsOf", i)
		}
		all[i] = r.ref
	}
	return all, nil
}
