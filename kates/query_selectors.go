package kates

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/kinds/selectable"
)

// Selection narrows a query by labels and fields, as [Query] does.
type Selection struct {
	LabelSelector string
	FieldSelector string
}

// selectors parses the query's own selectors.
func (q Query) selectors() (labels.Selector, fields.Selector, error) {
	return Selection{q.LabelSelector, q.FieldSelector}.selectors()
}

// selectors parses selectors; nil where there are none.
func (q Selection) selectors() (l labels.Selector, f fields.Selector, err error) {
	if l, err = parseLabels("label", q.LabelSelector); err != nil {
		return nil, nil, err
	}
	f, err = parseSelector("field", q.FieldSelector, fields.ParseSelector)
	return l, f, err
}

// errSelectsAll is the error of a selector that is not empty, but selects everything, like " "
// and ",". The program that composed it meant fewer objects, and may be about to delete them.
var errSelectsAll = errors.New("it says nothing, so everything would be selected: leave it empty for that")

// parseLabels parses a selector of labels; nil if it is empty. what names it in the error.
func parseLabels(what, selector string) (labels.Selector, error) {
	return parseSelector(what, selector, func(s string) (labels.Selector, error) { return labels.Parse(s) })
}

func parseSelector[S interface{ Empty() bool }](what, text string, parse func(string) (S, error)) (S, error) {
	var none S
	if text == "" {
		return none, nil
	}
	selector, err := parse(text)
	if err == nil && selector.Empty() {
		err = errSelectsAll
	}
	if err != nil {
		return none, fmt.Errorf("%s selector %q: %w", what, text, err)
	}
	return selector, nil
}

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
