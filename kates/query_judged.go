package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/internal/client/kinds"
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
	declared, err := c.core.declaredFields(ctx, r.Kind, wanted)
	r.Field = reader(declared)
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
