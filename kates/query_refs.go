package kates

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/snapshot"
)

// Ref says that objects of one query name those of another, see [RefsOf].
type Ref struct {
	ref accumulator.Ref
	err error // it cannot be meant
}

// RefsOf returns an element of [Query.Refs]: the objects that those of another query name, of the field of that name. T is how the function
// takes them: what a slice of them may have as elements (see [Client.Watch]), best that of the field, or [Object] for whatever the watch
// holds.
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
// A name without a namespace is in that of the object, unless the kind that is named has none; one without a name is none. What no object can be called
// (a kind that has namespaces, and the name has none, nor has the object that says it) is absent. The function is called once per version of an object, never twice at a
// time, without locks. It does not write to the object, and hangs on it alone: the same object names the same. Where it panics, or the object does not
// decode as a T, the object names what it named before, and that is logged.
func RefsOf[T any](query string, names func(T) []types.NamespacedName) Ref {
	r := Ref{ref: accumulator.Ref{Query: query}}
	if names == nil {
		r.err = errors.New("its function is nil")
		return r
	}
	t := reflect.TypeFor[T]()
	var as *snapshot.Binding
	if t.Kind() != reflect.Interface { // all objects are of one that is meant
		if as, r.err = elementsOf[T](); r.err != nil {
			r.err = fmt.Errorf("no object is a %s: %w", t, r.err)
		}
	}
	r.ref.Names = func(o accumulator.Object) ([]accumulator.Key, error) {
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

// elementsOf says how objects become a T.
func elementsOf[T any]() (*snapshot.Binding, error) {
	type one struct{ Objects []T }
	return snapshot.Compile(reflect.TypeFor[one](), []snapshot.Query{{Name: "Objects"}})
}

// refs are a query's references as the accumulator has them.
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
