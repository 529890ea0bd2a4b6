package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/kinds/selectable"
	objects "github.com/kates-go/kates/internal/object"
)

// documentTries is how often the server is asked for a document without a field, a second apart.
// The server publishes the document a moment after the kind.
const documentTries = 10

// readAlternatives is readFields for a query whose alternatives may have to be judged here. The
// server knows their fields, as it has been asked, so what its document lacks may come. A query
// that is optional does not wait for that: its kind is looked for again.
func (c *Client) readAlternatives(
	ctx context.Context, r *objects.Resource, t target, watches func(objects.Resource) []objects.Spec,
) error {
	for tries := 1; ; tries++ {
		unknown := c.readFields(ctx, r, t.Query)
		if unknown == nil || t.AnyOf == nil {
			return nil
		}
		var unjudged error
		for _, w := range watches(*r) {
			unjudged = cmp.Or(unjudged, objects.Unjudged(*r, w))
		}
		if unjudged == nil {
			return nil
		}
		err := fmt.Errorf("%w: %w", unjudged, unknown)
		if t.Optional || tries == documentTries || errors.Is(unknown, kinds.ErrNoDiscovery) {
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
func (c *Client) readFields(ctx context.Context, r *objects.Resource, q Query) error {
	if r.Field != nil {
		return nil // the server refuses a field that a built-in resource does not declare
	}
	wanted := fieldsSelected(q)
	if len(wanted) == 0 {
		return nil
	}
	declared, err := c.core.Kinds.Declared(ctx, r.Kind, wanted)
	if err != nil {
		const says = "selectable fields not known: own writes are settled by a list each"
		c.core.Log.V(1).Info(says, "kind", r.Kind.String(), "fields", wanted, "err", err)
	}
	r.Field = core.ReaderOf(declared)
	return err
}

// fieldsSelected returns the fields that a query's field selectors name, except for metadata's.
func fieldsSelected(q Query) (wanted []string) {
	for _, s := range q.selections() {
		_, f, err := s.selectors()
		if err != nil || f == nil {
			continue
		}
		for _, req := range f.Requirements() {
			if req.Field != "metadata.name" && req.Field != "metadata.namespace" {
				wanted = append(wanted, req.Field)
			}
		}
	}
	return wanted
}

// checkFields asks the server whether it knows the query's fields: a watch would repeat the error
// for ever. Of a fake it refuses what a server refuses.
func (c *Client) checkFields(ctx context.Context, r objects.Resource, t target) error {
	if c.core.Fake != nil {
		return c.checkList(r, t.Query)
	}
	namespace := t.Namespace
	if len(t.Namespaces) > 0 {
		namespace = t.Namespaces[0]
	}
	source := c.core.Server.Source(r, namespace, t.formOf())
	for i, s := range t.selections() {
		_, f, err := s.selectors()
		if err != nil {
			return err
		}
		// Every resource has metadata.name, and nothing else for certain: some resources without
		// namespaces refuse metadata.namespace.
		doubted := func(req fields.Requirement) bool { return req.Field != "metadata.name" }
		if i > 0 && r.Namespaced {
			// In AnyOf a namespace that is required is part of the path, and no field.
			doubted = func(req fields.Requirement) bool {
				return req.Field != "metadata.name" &&
					(req.Field != "metadata.namespace" || req.Operator == selection.NotEquals)
			}
		}
		if f == nil || !slices.ContainsFunc(f.Requirements(), doubted) {
			continue
		}
		o := metav1.ListOptions{FieldSelector: f.String(), Limit: 1}
		drop := func(runtime.Object) error { return nil }
		if _, err = source.ListItems(ctx, o, drop); apierrors.IsBadRequest(err) {
			return fmt.Errorf("field selector %q: %w", f, err)
		}
	}
	return nil
}

// checkList refuses the fields of built-in kinds that a server refuses and a fake does not. Which
// fields a custom kind declares is not known here.
func (c *Client) checkList(r objects.Resource, q Query) error {
	if c.core.Fake == nil || !fake.OfKubernetes(r.Kind) {
		return nil
	}
	for _, selection := range q.selections() {
		_, f, err := selection.selectors()
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		for _, term := range f.Requirements() {
			if err := selectable.Unsupported(r.GroupVersionResource, r.Namespaced, term.Field); err != nil {
				return fmt.Errorf("field selector %q: %w", f, apierrors.NewBadRequest(err.Error()))
			}
		}
	}
	return nil
}
