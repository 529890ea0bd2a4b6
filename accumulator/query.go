package accumulator

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
)

// ErrNotServed says that complete discovery has no such resource. [Query.Resolve] wraps it only
// if that is certain: an optional query then counts as empty.
var ErrNotServed = errors.New("not served")

// Query is one field of a snapshot: the objects of a kind, in a namespace or in
// all, narrowed by selectors.
type Query struct {
	// Name is the name of the snapshot's field, unique within an accumulator.
	Name string
	// Kind is the kind as the user wrote it, for messages.
	Kind string
	// Namespace is the only namespace, or "" for all.
	Namespace string
	// Namespaces, if not nil, are watched one by one, in place of Namespace. Rights in these
	// namespaces suffice.
	Namespaces []string
	// Spaces, if not nil, narrows a query over all namespaces to those that it selects.
	Spaces *Spaces
	// Labels and Fields narrow the query; nil selects everything.
	Labels labels.Selector
	Fields fields.Selector
	// AnyOf, if not nil, is a union: an object is in the query if one of them selects it, and so
	// do Labels and Fields.
	AnyOf []Selection
	// Optional: definite answers (not served, forbidden again and again) count as empty. Any
	// other error delays the first signal, as for other queries.
	Optional bool
	// Form is the form of the objects. Queries share a stream only if their forms are the same.
	Form Form
	// Transform, if any, changes each object before it is stored. Queries share a stream only if
	// their functions are one value. A closure that is made again is another value.
	Transform Transform
	// Signal, if any, decides which changes are worth a signal; without it every change is. It
	// belongs to the listener, so queries with other Signals share a stream.
	Signal Signal
	// Key, for [Partitions], returns the keys of an object; without it, the object belongs to
	// every partition. Others ignore it.
	Key KeyFunc
	// Refs, if not nil, limit the query to the objects that objects of other queries name. Each
	// is watched by itself. Labels and Fields narrow them.
	Refs []Ref
	// Resolve finds the resource. It may ask the server.
	Resolve func(ctx context.Context) (Resource, error)
}

// Spaces selects namespaces by their labels.
type Spaces struct {
	Labels labels.Selector
	// Resolve finds the resource of namespaces.
	Resolve func(ctx context.Context) (Resource, error)
}

// Predicate decides on the server's object whether it is part of the snapshot. It
// is called without locks and must not write to its argument.
type Predicate func(*unstructured.Unstructured) bool

// union reports whether several streams may show one object.
func (q Query) union() bool { return len(q.AnyOf) > 1 }

// Watches returns the lists and watches of the query for a resource.
func (q Query) Watches(r Resource) (all []stream.Spec) {
	namespaces := q.Namespaces
	if namespaces == nil {
		namespaces = []string{q.Namespace}
	}
	if !r.Namespaced {
		namespaces = []string{""}
	}
	selections := q.AnyOf
	if selections == nil {
		selections = []Selection{{}}
	}
	for _, ns := range namespaces {
		for _, s := range selections {
			all = append(all, stream.Spec{Namespace: ns, Selection: Selection{Labels: q.Labels, Fields: q.Fields}.And(s), Form: q.Form, Transform: q.Transform})
		}
	}
	return all
}

// selects returns the selections of the query's streams, nil if the query is no union.
func (q Query) selects(r Resource) stream.Union {
	if !q.union() {
		return nil
	}
	var all []Selection
	watches := q.Watches(r)
	for _, w := range watches {
		if w.Namespace == watches[0].Namespace { // each has the same selections
			all = append(all, w.Selection)
		}
	}
	return stream.NewUnion(r, all...)
}
