package kates

import (
	"context"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/kinds/selectable"
)

// reader is how the accumulator reads selectable fields; nil if there are none.
func reader(f selectable.Fields) stream.FieldReader {
	if len(f) == 0 {
		return nil
	}
	return func(o stream.Object, field string) (string, bool) { return f.Value(o, field) }
}

// readFields lets r read the fields that a query selects by, as far as they can be known. The
// server is asked for its OpenAPI document only if they are neither metadata nor built in.
func (c *Client) readFields(ctx context.Context, r *stream.Resource, q Query) {
	if r.Field != nil {
		return // the server refuses a field that a built-in resource does not declare
	}
	wanted := fieldsSelected(q)
	if len(wanted) == 0 {
		return
	}
	r.Field = reader(c.core.server.declaredFields(ctx, r.Kind, wanted))
}

// fieldsSelected returns the fields that a query's field selectors name, except for metadata's.
func fieldsSelected(q Query) (wanted []string) {
	for _, s := range append([]Selection{{FieldSelector: q.FieldSelector}}, q.AnyOf...) {
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
