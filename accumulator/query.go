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
}

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
	// Labels and Fields narrow the query; nil selects everything. Label selectors are
	// also evaluated here; field selectors are the server's matter.
	Labels labels.Selector
	Fields fields.Selector
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
	// Resolve finds the resource. It may ask the server.
	Resolve func(ctx context.Context) (Resource, error)
}

// Predicate decides on the server's object whether it is part of the snapshot. It
// is called without locks and must not write to its argument.
type Predicate func(*unstructured.Unstructured) bool

// labelSelector and fieldSelector are the selectors as the server takes them.
func (q Query) labelSelector() string {
	if q.Labels == nil {
		return ""
	}
	return q.Labels.String()
}

func (q Query) fieldSelector() string {
	if q.Fields == nil {
		return ""
	}
	return q.Fields.String()
}
