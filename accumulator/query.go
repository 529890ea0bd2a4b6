package accumulator

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/snapshot"
)

// Key names an object within a resource.
type Key = coherence.Key

// Object is an object as a stream holds it. It is shared: nobody writes to it.
type Object = snapshot.Object

// ErrNotServed says that complete discovery knows no such resource. A
// [Query.Resolve] wraps it where, and only where, that is certain: an optional
// query then counts as empty.
var ErrNotServed = errors.New("not served")

// ErrClosed is the cause of an end by Close.
var ErrClosed = errors.New("closed")

// Resource is a resource of the API as it is watched.
type Resource struct {
	schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Storage names the stored resource: the same for every group and version through
	// which one set of objects is served.
	Storage string
	// Field reads the fields that the resource can be selected by; nil reads none.
	Field FieldReader
}

// serves reports whether it is the same resource, served in the same way.
func (r Resource) serves(o Resource) bool {
	return r.GroupVersionResource == o.GroupVersionResource && r.Kind == o.Kind && r.Namespaced == o.Namespaced && r.Storage == o.Storage
}

// FieldReader returns the value that the server compares a field selector's with, for an
// object of one resource. It is false for a field it does not know, or cannot read from this object: what the server makes
// of it is then for the server to say. metadata.name and metadata.namespace are never asked for. It is pure, fast, and safe for concurrent use.
type FieldReader func(o Object, field string) (value string, ok bool)

// Source lists and watches one resource, in one namespace or in all (""). It is
// asked with the options of the Kubernetes API (list, watch, selectors, resource
// versions), in the form that the objects are to have, and may be used by several goroutines
// at once. Objects that it delivers are nobody else's. One that can deliver only whole objects
// is a [Former].
type Source func(r Resource, namespace string, form Form) cache.ListerWatcherWithContext

// Query is one field of a snapshot: the objects of a kind, in a namespace or in
// all, narrowed by selectors.
type Query struct {
	// Name of the snapshot's field, unique within an accumulator.
	Name string
	// Kind as the user wrote it, for messages.
	Kind string
	// Namespace, or "" for all.
	Namespace string
	// Namespaces, if not nil, are watched one by one, in place of Namespace: for rights that end there.
	Namespaces []string
	// Spaces, if not nil, narrows a query over all namespaces to those that it selects.
	Spaces *Spaces
	// Labels and Fields narrow the query; nil selects everything.
	Labels labels.Selector
	Fields fields.Selector
	// AnyOf, if not nil, is a union: an object is in the query if one of them selects it, and so do Labels and
	// Fields.
	AnyOf []Selection
	// Optional: definite answers (not served, forbidden again and again) count as
	// empty. Anything else holds the first signal like for any other query.
	Optional bool
	// Form of the objects. Part of what makes streams shared.
	Form Form
	// Transform, if any, changes each object before it is held. Queries share a stream only if
	// their functions are one value: a closure that is made anew is another one.
	Transform Transform
	// Signal, if any, decides which changes are worth a signal; without it every change
	// is. It is the subscriber's own: streams are shared all the same.
	Signal Signal
	// Key, for [Partitions], says to which of them an object belongs; without it, to all. Others ignore it.
	Key KeyFunc
	// Refs, if not nil, say which objects are watched, one by one: those that objects of other queries name. Labels and Fields
	// narrow them.
	Refs []Ref
	// Resolve finds the resource. It may ask the server.
	Resolve func(ctx context.Context) (Resource, error)
}

// Selection narrows a query; nil selects everything. The server evaluates both. Own writes are
// judged here as well: by labels, name, namespace, and what [Resource.Field] reads.
type Selection struct {
	Labels labels.Selector
	Fields fields.Selector
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

// labelSelector and fieldSelector are the selectors as the server takes them.
func (q Selection) labelSelector() string {
	if q.Labels == nil {
		return ""
	}
	return q.Labels.String()
}

func (q Selection) fieldSelector() string {
	if q.Fields == nil {
		return ""
	}
	return q.Fields.String()
}

// and is what both select.
func (q Selection) and(more Selection) Selection {
	switch {
	case q.Labels == nil:
		q.Labels = more.Labels
	case more.Labels != nil:
		requirements, _ := more.Labels.Requirements()
		q.Labels = q.Labels.Add(requirements...)
	}
	switch {
	case q.Fields == nil:
		q.Fields = more.Fields
	case more.Fields != nil:
		q.Fields = fields.AndSelectors(q.Fields, more.Fields)
	}
	return q
}

// union reports whether several streams may show one object.
func (q Query) union() bool { return len(q.AnyOf) > 1 }

// Watched is one list+watch of a query.
type Watched struct {
	Namespace string
	Selection
	Form      Form
	Transform Transform
}

// Watches are the list+watches that make up the query for a resource.
func (q Query) Watches(r Resource) (all []Watched) {
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
			all = append(all, Watched{ns, Selection{q.Labels, q.Fields}.and(s), q.Form, q.Transform})
		}
	}
	return all
}
