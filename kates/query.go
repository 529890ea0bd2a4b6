package kates

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/accumulator"
)

// A Query says which objects to list or watch: those of a kind, in a namespace or in
// all, narrowed by selectors.
type Query struct {
	// Name of the snapshot's field that receives the objects. List ignores it.
	Name string
	// Kind is whatever kubectl takes, in any letter case: svc, Service, services,
	// deployments.apps, Deployment.v1.apps.
	Kind string
	// Namespace to look in. Empty means all namespaces, whatever the client's default
	// namespace is.
	Namespace string
	// FieldSelector narrows by fields, as the server supports them for the kind:
	// metadata.name=x, spec.nodeName=y.
	// See https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
	FieldSelector string
	// LabelSelector narrows by labels: app=web,tier!=cache.
	// See https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
	LabelSelector string
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
	// It gets an *Unstructured, or, where only metadata is watched, a *PartialObjectMetadata, which
	// nobody else has yet. It must not change kind, namespace, name, UID and resource version, nor keep the
	// object. It runs without locks, possibly in several goroutines at once, one of which is the one that
	// watches: it has to be quick. Where it returns an error or panics, that one object is left
	// out as [Invalid] until its next version.
	//
	// Queries that are equal share a watch only if their functions are one value: keep
	// what DropFields or a closure returns in a variable. List ignores it.
	Transform func(Object) error
	// Signal, if any, says whether a change is worth a signal; without it every change is. What is not is in the
	// next snapshot and its deltas all the same. old is nil for an object that is new to the
	// query, and current is nil for one that left it; one that was replaced by another of its name did
	// both, and is asked about twice. See [GenerationChanged], [LabelsChanged], [AnnotationsChanged] and [AnyOf].
	//
	// It is asked once per change, of objects as they are held (after Transform), must not write to
	// them, and runs like Transform. A panic is logged and counts as true. List ignores it.
	Signal func(old, current Object) bool
}

// selectors parses the query's selectors; nil where there are none.
func (q Query) selectors() (labels.Selector, fields.Selector, error) {
	var l labels.Selector
	var f fields.Selector
	var err error
	if q.LabelSelector != "" {
		if l, err = labels.Parse(q.LabelSelector); err != nil {
			return nil, nil, fmt.Errorf("label selector %q: %w", q.LabelSelector, err)
		}
	}
	if q.FieldSelector != "" {
		if f, err = fields.ParseSelector(q.FieldSelector); err != nil {
			return nil, nil, fmt.Errorf("field selector %q: %w", q.FieldSelector, err)
		}
	}
	return l, f, nil
}

// target is a query with what a struct's field adds to it.
type target struct {
	Query
	// kind is fixed by the field's Go type; empty if it is not.
	kind schema.GroupVersionKind
	// form is fixed by it, too.
	form accumulator.Form
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
func (c *Client) compile(targets []target, transform func(Object) error) ([]accumulator.Query, error) {
	if len(targets) == 0 {
		return nil, errors.New("nothing to watch: no query was given")
	}
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
		l, f, err := t.selectors()
		if err != nil {
			return nil, fmt.Errorf("query %q: %w", t.Name, err)
		}
		q := accumulator.Query{
			Name: t.Name, Kind: t.Kind, Namespace: t.Namespace,
			Labels: l, Fields: f, Optional: t.Optional,
			Form: t.formOf(), Transform: t.Transform, Signal: t.Signal,
			Resolve: func(ctx context.Context) (accumulator.Resource, error) { return c.resolve(ctx, t) },
		}
		if q.Kind == "" {
			q.Kind = t.kind.Kind
		}
		if q.Transform == nil {
			q.Transform = transform
		}
		queries = append(queries, q)
	}
	return queries, nil
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
		mapping, err = c.core.resolver.kindContext(ctx, t.Kind)
	} else {
		mapping, err = c.core.resolver.gvkContext(ctx, t.kind)
	}
	if err != nil {
		return accumulator.Resource{}, definite(err)
	}
	if err := c.core.resolver.canWatch(mapping.Resource); err != nil {
		return accumulator.Resource{}, err
	}
	r := c.resource(ctx, mapping)
	return r, c.probeFields(ctx, r, t)
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
		Storage:              c.core.resolver.storageContext(ctx, m.Resource),
	}
}

// probeFields asks the server whether it knows the query's fields: a watch would
// only ever repeat the error.
func (c *Client) probeFields(ctx context.Context, r accumulator.Resource, t target) error {
	_, f, err := t.selectors()
	if err != nil || f == nil || c.core.fake {
		return err
	}
	ask := false
	for _, req := range f.Requirements() {
		ask = ask || (req.Field != "metadata.name" && req.Field != "metadata.namespace")
	}
	if !ask {
		return nil
	}
	source := c.core.source(r, t.Namespace, t.formOf())
	_, err = source.ListWithContext(ctx, metav1.ListOptions{FieldSelector: t.FieldSelector, Limit: 1})
	if apierrors.IsBadRequest(err) {
		return fmt.Errorf("field selector %q: %w", t.FieldSelector, err)
	}
	return nil
}
