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
		// namespaces refuse metadata.namespace. In AnyOf a namespace that is required is part of the
		// path, and no field.
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
