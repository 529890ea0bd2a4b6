package compile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
)

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
		err = cmp.Or(w.suits(r), c.checkFake(r, w))
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
	return r, items, plain.While(op.String()+" "+r.Resource, err)
}
