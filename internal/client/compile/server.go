package compile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/kinds/selectable"
	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
)

// documentTries is how often the server is asked for a document without a field, a second apart.
// The server publishes the document a moment after the kind.
const documentTries = 10

// readAlternatives is readFields for the fields by which AnyOf selects, which the client may have
// to judge. The server has accepted these fields before. A field that its OpenAPI document lacks
// may therefore come: the document is read again, once a second. An optional query does not wait
// for that: its kind is looked for again anyway.
func (c *Compiler) readAlternatives(ctx context.Context, r *objects.Resource, w *Wanted, watches func(objects.Resource) []objects.Spec) error {
	for tries := 1; ; tries++ {
		unknown := c.readFields(ctx, r, w)
		if unknown == nil || w.AnyOf == nil {
			return nil
		}
		var unjudged error
		for _, spec := range watches(*r) {
			unjudged = cmp.Or(unjudged, objects.Unjudged(*r, spec))
		}
		if unjudged == nil {
			return nil
		}
		err := fmt.Errorf("%w: %w", unjudged, unknown)
		if w.Optional || tries == documentTries || errors.Is(unknown, kinds.ErrNoDiscovery) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(time.Second):
			r.Field = nil
		}
	}
}

// readFields lets r read the fields that a query selects by, as far as they can be known. The
// server is asked for its OpenAPI document only if they are neither metadata nor built in. The
// error says why some are not known.
func (c *Compiler) readFields(ctx context.Context, r *objects.Resource, w *Wanted) error {
	if r.Field != nil {
		return nil // the server refuses a field that a built-in resource does not declare
	}
	wanted := fieldsOf(w.selections())
	if len(wanted) == 0 {
		return nil
	}
	declared, err := c.Kinds.Declared(ctx, r.Kind, wanted)
	if err != nil {
		const says = "selectable fields not known: own writes are settled by a list each"
		c.Log.V(1).Info(says, "kind", r.Kind.String(), "fields", wanted, "err", err)
	}
	r.Field = core.ReaderOf(declared)
	return err
}

// checkFields asks the server whether it knows the query's fields: a watch would repeat the error
// for ever. Of a fake it refuses what a server refuses.
func (c *Compiler) checkFields(ctx context.Context, r objects.Resource, w *Wanted) error {
	if c.Fake != nil {
		return c.checkFake(r, w)
	}
	namespace := w.Namespace
	if len(w.Namespaces) > 0 {
		namespace = w.Namespaces[0]
	}
	source := c.Server.Source(r, namespace, w.watchedForm())
	for i, one := range w.selections() {
		s, err := one.selectors()
		if err != nil {
			return err
		}
		// Every resource has metadata.name, and nothing else for certain: some resources without
		// namespaces refuse metadata.namespace. In AnyOf a namespace that is required is part of
		// the path, and no field.
		inPath := i > 0 && r.Namespaced
		doubted := func(req fields.Requirement) bool {
			return req.Field != "metadata.name" &&
				(!inPath || req.Field != "metadata.namespace" || req.Operator == selection.NotEquals)
		}
		if s.Fields == nil || !slices.ContainsFunc(s.Fields.Requirements(), doubted) {
			continue
		}
		o := metav1.ListOptions{FieldSelector: s.Fields.String(), Limit: 1}
		drop := func(runtime.Object) error { return nil }
		if _, err = source.ListItems(ctx, o, drop); apierrors.IsBadRequest(err) {
			return fmt.Errorf("field selector %q: %w", s.Fields, err)
		}
	}
	return nil
}

// checkFake refuses the fields of built-in kinds that a server refuses and a fake does not. Which
// fields a custom kind declares is not known here.
func (c *Compiler) checkFake(r objects.Resource, w *Wanted) error {
	if c.Fake == nil || !fake.OfKubernetes(r.Kind) {
		return nil
	}
	for _, one := range w.selections() {
		s, err := one.selectors()
		if err != nil {
			return err
		}
		if s.Fields == nil {
			continue
		}
		for _, term := range s.Fields.Requirements() {
			if err := selectable.Unsupported(r.GroupVersionResource, r.Namespaced, term.Field); err != nil {
				return fmt.Errorf("field selector %q: %w", s.Fields, apierrors.NewBadRequest(err.Error()))
			}
		}
	}
	return nil
}

// List reads all objects of a query from the server, for an operation that errors name. They are
// in the server's order or, if that takes several lists, ordered by namespace and name.
func (c *Compiler) List(ctx context.Context, op fmt.Stringer, w Wanted) (objects.Resource, []*unstructured.Unstructured, error) {
	compiled, err := c.one(w)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return objects.Resource{}, nil, plain.While(op.String()+" "+w.Kind, err)
	}
	r, items, err := c.listAs(ctx, op, &w, compiled)
	if !core.Misplaced(err) && !errors.Is(err, query.ErrUnfit) && !slices.ContainsFunc(items, func(u *unstructured.Unstructured) bool {
		return r.Check(u) != nil
	}) {
		return r, items, err
	}
	c.Kinds.Refresh(ctx)
	if mapping, lookup := c.Kinds.Kind(ctx, w.Kind); lookup != nil || c.Resource(ctx, mapping).Serves(r) {
		return r, items, err
	}
	return c.listAs(ctx, op, &w, compiled)
}

// listAs reads all objects of a query, as its kind is known to be served.
func (c *Compiler) listAs(
	ctx context.Context, op fmt.Stringer, w *Wanted, compiled query.Query,
) (r objects.Resource, items []*unstructured.Unstructured, err error) {
	mapping, err := c.Kinds.Kind(ctx, w.Kind)
	if err == nil {
		r = c.Resource(ctx, mapping)
		err = cmp.Or(w.suits(r), c.checkKind(w, r.Kind), c.checkFake(r, w))
	}
	if err != nil {
		return r, nil, plain.While(op.String(), err)
	}
	var unknown error
	if w.AnyOf != nil {
		unknown = c.readFields(ctx, &r, w)
	}
	items, err = c.ListAll(ctx, r, compiled)
	if errors.Is(err, objects.ErrUnjudged) && unknown != nil {
		err = fmt.Errorf("%w: %w", err, unknown)
	}
	if err == nil {
		items, err = w.Where.filter(items)
	}
	return r, items, plain.While(op.String()+" "+r.Resource, err)
}
