package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/kinds/selectable"
)

// A Query says which objects to list or watch: those of a kind, in a namespace or in
// all, narrowed by selectors.
//
// # What its functions are given
//
// Transform, Signal and Key are given one object in different Go types, by where it comes from:
//
//   - *Unstructured on a fake (katestest), which unit tests use, and on every client that is made of a dynamic.Interface; with [WithUntypedStreams]; with
//     [Client.Watch]; and for fields that do not say a type that the client's scheme knows.
//   - *corev1.Pod, or whatever the field says, on a real client, where the scheme knows the type.
//   - *PartialObjectMetadata where only metadata is watched.
//
// So a type assertion that holds in production fails in the unit test, or the other way round: where it panics, a Signal counts as true and a Key
// has the object left out as [Invalid]. Functions that need metadata alone take it from the methods of [Object] (GetLabels, GetAnnotations,
// GetOwnerReferences, …), which all of them have. Those that need more of an object convert it, which costs a copy per call:
//
//	func ready(o kates.Object) bool {
//	    var node corev1.Node
//	    if err := kates.ConvertObject(nil, o, &node); err != nil { // takes all of these types
//	        return false
//	    }
//	    …
//	}
//
// or switch on the types, a case for each. [ByField], [DropFields] and the like take all of them.
type Query struct {
	// Name of the snapshot's field that receives the objects. List ignores it.
	Name string
	// Kind is whatever kubectl takes, in any letter case: svc, Service, services,
	// deployments.apps, Deployment.v1.apps.
	Kind string
	// Namespace to look in. Empty means all namespaces, whatever the client's default
	// namespace is.
	Namespace string
	// Namespaces, if not nil, are looked in, each with requests of its own, in place of Namespace:
	// rights in each of them suffice. An empty list is no namespace. What was in a namespace that is deleted while the watch is
	// not connected is known to be gone only with the right to get the namespace, by a cluster role: a role in it
	// goes with it, and what is left is a refusal, for which nothing is taken away.
	Namespaces []string
	// NamespaceSelector narrows a query over all namespaces to those whose labels it selects:
	// team=a. It needs the rights to watch the kind in all namespaces, and namespaces; objects come and go
	// with the labels of their namespace in one snapshot.
	NamespaceSelector string
	// FieldSelector narrows by fields, as the server supports them for the kind:
	// metadata.name=x, spec.nodeName=y, or what a custom kind declares in selectableFields. Others are refused with the server's error.
	// An own write by which an object moves in or out is judged by the client itself. Where it cannot (a kind of an aggregated
	// API, an OpenAPI document that cannot be read), the write method asks the server by one short list.
	// See https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
	FieldSelector string
	// LabelSelector narrows by labels: app=web,tier!=cache.
	// See https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
	LabelSelector string
	// AnyOf, if not nil, is a union: an object must be selected by one of them, and by LabelSelector and
	// FieldSelector where those are set. Each costs a list and a watch.
	AnyOf []Selection
	// Optional: where the kind is certainly not served, or listing it is refused again
	// and again for lack of rights, the field is nil, and filled as soon as that
	// changes. An outage is neither: it holds the first snapshot up like for any other
	// query.
	Optional bool
	// MetadataOnly watches the metadata of the objects and nothing else: neither the
	// server sends more, nor is more held. A field of []*PartialObjectMetadata, or another form
	// with that type, says so by itself.
	MetadataOnly bool
	// Transform, if any, changes each version of an object once, before it is held for
	// anybody: it drops what the program does not need. See [DropManagedFields], [DropFields]
	// and [Transforms]; [WithTransform] sets one for all queries that have none. What the query selects is
	// judged before.
	//
	// It gets an *Unstructured, a *PartialObjectMetadata, or a pointer to the Go type of the field, as [Query] says: on a fake
	// not the type that it gets on a real client. Nobody else has the object yet. It must not
	// change kind, namespace, name, UID and resource version, nor keep the object. It runs without locks, possibly in
	// several goroutines at once, one of which is the one that watches: it has to be quick. Where it returns an error
	// or panics, that one object is left out as [Invalid] until its next version.
	//
	// Queries that are equal share a watch only if their functions are one value: keep
	// what DropFields or a closure returns in a variable. List ignores it.
	Transform func(Object) error
	// Signal, if any, says whether a change is worth a signal; without it every change is. What is not is in the
	// next snapshot and its deltas all the same. old is nil for an object that is new to the
	// query, and current is nil for one that left it; one that was replaced by another of its name did
	// both, and is asked about twice. See [GenerationChanged], [LabelsChanged], [AnnotationsChanged] and [AnyOf].
	//
	// NOT ALWAYS THE FIELD'S GO TYPE: an object is an *Unstructured on a fake, and a *corev1.Node, say, on a real client. Use the methods of
	// [Object], or [ConvertObject]; a type assertion that panics counts as true. See [Query].
	//
	// It is asked once per change, of objects as they are held (after Transform), must not write to
	// them, and runs like Transform. A panic is logged and counts as true. List ignores it.
	Signal func(old, current Object) bool
	// Key says, for [WatchEach], [RunEach] and what a controller watches, to which partitions an object belongs: to those of the keys that it
	// returns, which may be several; to none; or, if [EveryPartition] is among them, to all. All objects of a query without it
	// belong to every partition. See [ByNamespace], [ByObjectName], [ByNamespacedName], [ByUID], [ByOwner], [ByLabel], [ByAnnotation] and [ByField].
	//
	// NOT ALWAYS THE FIELD'S GO TYPE: the object is an *Unstructured on a fake, and a *corev1.Pod, say, on a real client. Use the methods of
	// [Object], [ByField], or [ConvertObject]; a type assertion that panics leaves the object out. See [Query].
	//
	// It is asked once per version of an object, as that is held (after Transform), by one of those who take turns, never by two
	// goroutines at a time; it must not write to it. The same object has the same keys. An object for which it panics, or returns an empty
	// key, is left out as [Invalid] until its next version. Watch, Open and List ignore it.
	Key func(Object) []string
	// Refs, if not nil, say that only the objects are watched that those of other queries name, one by one, for as long as they are named: with
	// the rights to get, list and watch these by their names (resourceNames), and in little memory. See [RefsOf]. LabelSelector and
	// FieldSelector narrow them; namespaces and AnyOf there are none. With a [Lookup] what is not named is not found.
	//
	// The first snapshot waits until each object that is named is known to be present or absent. Later a new version of an object that names another
	// is not shown before that is known; what it was until then stays, and everything else goes on. That is a moment, and ten seconds at
	// most, and then, or where the server refuses, it counts as absent until it is known; Status has the error. A first snapshot, too, does not wait for
	// what the server refuses if the query is Optional. An own write that names something new is an exception to "each later snapshot
	// shows it": it waits like others.
	//
	// Each object that is named costs a list and a watch, shared with all who ask for the same, which end some time (the grace period) after it is named no
	// more. For thousands of them a query without Refs costs less, if there are the rights; from a thousand on that is logged, once.
	// Queries with Refs may name each other in a chain, and not in a circle. List ignores it, Open refuses it.
	Refs []Ref
}

// target is a query with what a struct's field adds to it.
type target struct {
	Query
	// kind is fixed by the field's Go type; empty if it is not.
	kind schema.GroupVersionKind
	// form is fixed by it, too.
	form accumulator.Form

	index []int        // of the field
	typ   reflect.Type // of the field that objects are put into; nil if it is the struct's own
	role  role         // in a controller's type
}

// formOf is the form in which the target's objects are watched.
func (t target) formOf() accumulator.Form {
	if t.MetadataOnly {
		return accumulator.Metadata
	}
	return t.form
}

// compile turns queries into what the accumulator works with. Every error names its
// query.
func (c *Client) compile(targets []target) ([]accumulator.Query, error) {
	if len(targets) == 0 {
		return nil, errors.New("nothing to watch: no query was given")
	}
	transform := c.watch.get().transform
	seen := make(map[string]bool)
	var queries []accumulator.Query
	for i, t := range targets {
		switch {
		case t.Name == "":
			return nil, fmt.Errorf("query %d (kind %q) has no name", i, t.Kind)
		case seen[t.Name]:
			return nil, fmt.Errorf("query %q: there are two of that name", t.Name)
		case t.Kind == "" && t.kind.Empty():
			return nil, fmt.Errorf("query %q has no kind", t.Name)
		}
		seen[t.Name] = true
		if t.Transform == nil {
			t.Transform = transform
		}
		q, err := c.compileOne(t)
		if err != nil {
			return nil, fmt.Errorf("query %q: %w", t.Name, err)
		}
		queries = append(queries, q)
	}
	return queries, nil
}

func (c *Client) compileOne(t target) (q accumulator.Query, err error) {
	if err := t.checkNamespaces(); err != nil {
		return q, err
	}
	q = accumulator.Query{
		Name: t.Name, Kind: t.Kind, Namespace: t.Namespace, Namespaces: t.Namespaces, Optional: t.Optional,
		Form: t.formOf(), Transform: t.Transform, Signal: t.Signal, Key: t.Key,
		Resolve: func(ctx context.Context) (accumulator.Resource, error) { return c.resolve(ctx, t) },
	}
	if q.Kind == "" {
		q.Kind = t.kind.Kind
	}
	if q.Labels, q.Fields, err = t.selectors(); err != nil {
		return q, err
	}
	if q.Refs, err = t.refs(); err != nil {
		return q, err
	}
	if t.AnyOf != nil {
		q.AnyOf = make([]accumulator.Selection, len(t.AnyOf))
	}
	for i, s := range t.AnyOf {
		if q.AnyOf[i].Labels, q.AnyOf[i].Fields, err = s.selectors(); err != nil {
			return q, err
		}
	}
	if t.NamespaceSelector == "" {
		return q, nil
	}
	l, err := parseLabels(t.NamespaceSelector)
	if err != nil {
		return q, fmt.Errorf("namespace selector %q: %w", t.NamespaceSelector, err)
	}
	q.Spaces = &accumulator.Spaces{Labels: l, Resolve: func(ctx context.Context) (accumulator.Resource, error) {
		return c.resolve(ctx, target{kind: corev1.SchemeGroupVersion.WithKind("Namespace")})
	}}
	return q, nil
}

// checkNamespaces reports what cannot be meant.
func (q Query) checkNamespaces() error {
	switch {
	case q.Namespaces != nil && q.Namespace != "":
		return errors.New("it has both a Namespace and Namespaces: say one")
	case q.NamespaceSelector != "" && (q.Namespace != "" || q.Namespaces != nil):
		return errors.New("a NamespaceSelector narrows all namespaces: it goes with neither Namespace nor Namespaces")
	case slices.Contains(q.Namespaces, ""):
		return errors.New("one of its Namespaces is empty: for all namespaces leave them out")
	case q.AnyOf != nil && len(q.AnyOf) == 0:
		return errors.New("AnyOf is empty, so nothing could be selected: leave it out to select everything")
	}
	for _, namespace := range append(slices.Clone(q.Namespaces), q.Namespace) {
		if err := segment("namespace", namespace); err != nil {
			return err
		}
	}
	return nil
}

// resolve finds the resource of a query and checks that it can be watched as the
// query wants it.
func (c *Client) resolve(ctx context.Context, t target) (accumulator.Resource, error) {
	if err := ctx.Err(); err != nil {
		return accumulator.Resource{}, err
	}
	var mapping *meta.RESTMapping
	var err error
	if t.kind.Empty() {
		mapping, err = c.core.kinds.Kind(ctx, t.Kind)
	} else {
		mapping, err = c.core.kinds.GVK(ctx, t.kind)
	}
	if err != nil {
		return accumulator.Resource{}, definite(err)
	}
	if err := c.core.kinds.CanWatch(ctx, mapping.Resource); err != nil {
		return accumulator.Resource{}, err
	}
	r := c.resource(ctx, mapping)
	if err := t.suits(r); err != nil {
		return r, err
	}
	if err := c.core.server.checkFields(ctx, r, t); err != nil {
		return accumulator.Resource{}, err
	}
	c.readFields(ctx, &r, t.Query)
	return r, nil
}

// suits reports a query that cannot be meant for a resource.
func (q Query) suits(r accumulator.Resource) error {
	if q.NamespaceSelector != "" && !r.Namespaced {
		return fmt.Errorf("a NamespaceSelector says nothing about %s, which are in no namespace", r.Resource)
	}
	return nil
}

// definite marks an error of discovery as final where it is.
func definite(err error) error {
	var unknown *UnknownKindError
	if errors.As(err, &unknown) {
		return fmt.Errorf("%w: %w", accumulator.ErrNotServed, err)
	}
	return err
}

func (c *Client) resource(ctx context.Context, m *meta.RESTMapping) accumulator.Resource {
	return accumulator.Resource{
		GroupVersionResource: m.Resource,
		Kind:                 m.GroupVersionKind,
		Namespaced:           m.Scope.Name() == meta.RESTScopeNameNamespace,
		Storage:              c.core.kinds.Storage(ctx, m.Resource),
		Field:                reader(selectable.BuiltIn(m.Resource)),
	}
}
