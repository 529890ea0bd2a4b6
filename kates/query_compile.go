package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/kinds/selectable"
)

// target is a query with what a struct's field adds to it.
type target struct {
	Query
	// kind is fixed by the field's Go type; empty if it is not.
	kind schema.GroupVersionKind
	// form is fixed by it, too.
	form stream.Form

	index []int        // of the field
	typ   reflect.Type // of the field that objects are put into
	role  role         // in a controller's type
}

// targetsOf returns queries without fields.
func targetsOf(queries []Query) []target {
	targets := make([]target, len(queries))
	for i, q := range queries {
		targets[i] = target{Query: q}
	}
	return targets
}

// formOf returns the form in which the target's objects are watched.
func (t target) formOf() stream.Form {
	if t.MetadataOnly {
		return stream.Metadata
	}
	return t.form
}

// compile turns queries into those of the accumulator. Every error names its query.
func (c *Client) compile(targets []target) ([]query.Query, error) {
	if len(targets) == 0 {
		return nil, errors.New("nothing to watch: no query was given")
	}
	settings := c.watch.get()
	if settings.wrong != nil {
		return nil, settings.wrong
	}
	seen := make(map[string]bool)
	var queries []query.Query
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
			t.Transform = settings.transform
		}
		if err := c.checkTypes(t, targets); err != nil {
			return nil, fmt.Errorf("query %q: %w", t.Name, err)
		}
		q, err := c.compileOne(t)
		if err != nil {
			return nil, fmt.Errorf("query %q: %w", t.Name, err)
		}
		queries = append(queries, q)
	}
	return queries, nil
}

func (c *Client) compileOne(t target) (q query.Query, err error) {
	if err := cmp.Or(t.checkNamespaces(), t.checkFunctions()); err != nil {
		return q, err
	}
	q = query.Query{
		Name: t.Name, Kind: t.Kind, Namespace: t.Namespace, Namespaces: t.Namespaces, Optional: t.Optional,
		Form: t.formOf(), Transform: t.Transform, Signal: t.Signal, Key: t.Key,
		Resolve: func(ctx context.Context) (stream.Resource, error) { return c.resolve(ctx, t) },
	}
	if q.Kind == "" {
		q.Kind = t.kind.Kind
	}
	if q.Labels, q.Fields, err = t.selection().selectors(); err != nil {
		return q, err
	}
	if q.Refs, err = t.refs(); err != nil {
		return q, err
	}
	if t.AnyOf != nil {
		q.AnyOf = make([]stream.Selection, len(t.AnyOf))
	}
	for i, s := range t.AnyOf {
		if q.AnyOf[i].Labels, q.AnyOf[i].Fields, err = s.selectors(); err != nil {
			return q, err
		}
	}
	l, err := parseLabels("namespace", t.NamespaceSelector)
	if l == nil || err != nil {
		return q, err
	}
	q.Spaces = &query.Spaces{Labels: l, Resolve: func(ctx context.Context) (stream.Resource, error) {
		return c.resolve(ctx, target{kind: corev1.SchemeGroupVersion.WithKind("Namespace")})
	}}
	return q, nil
}

// checkNamespaces returns an error for namespaces and selections that make no sense.
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
		if err := namespaceName(namespace); err != nil {
			return err
		}
	}
	return nil
}

// resolve finds the resource of a query and checks that it can be watched as the query wants.
func (c *Client) resolve(ctx context.Context, t target) (stream.Resource, error) {
	if err := ctx.Err(); err != nil {
		return stream.Resource{}, err
	}
	mapping, err := c.mappingOf(ctx, t)
	if err != nil {
		return stream.Resource{}, definite(err, t.Optional)
	}
	if err := c.core.kinds.CanWatch(ctx, mapping.Resource); err != nil {
		return stream.Resource{}, err
	}
	r := c.resource(ctx, mapping)
	if err := t.suits(r); err != nil {
		return r, err
	}
	if err := c.core.server.checkFields(ctx, r, t); err != nil {
		return stream.Resource{}, err
	}
	c.readFields(ctx, &r, t.Query)
	return r, nil
}

// mappingOf returns the resource of a target's kind.
func (c *Client) mappingOf(ctx context.Context, t target) (*meta.RESTMapping, error) {
	if t.kind.Empty() {
		return c.core.kinds.Kind(ctx, t.Kind)
	}
	return c.core.kinds.GVK(ctx, t.kind)
}

// suits returns an error for a query that makes no sense for a resource.
func (q Query) suits(r stream.Resource) error {
	if r.Namespaced || q.Namespace == "" && q.Namespaces == nil && q.NamespaceSelector == "" {
		return nil
	}
	return fmt.Errorf("%w: %s are in no namespace, so leave the namespace out", query.ErrUnfit, r.Resource)
}

// definite marks an error of discovery as final where it is final.
func definite(err error, optional bool) error {
	var unknown *UnknownKindError
	switch {
	case !errors.As(err, &unknown):
		return err
	case optional:
		return fmt.Errorf("%w: %w", query.ErrNotServed, err)
	}
	return fmt.Errorf("%w: %w; a query that may go without it is optional", query.ErrNotServed, err)
}

// Selection narrows a query by labels and fields, as [Query] does: what is set must select an
// object.
type Selection struct {
	LabelSelector string
	FieldSelector string
	Labels        labels.Selector
	Fields        fields.Selector
}

// selection returns the query's own selection.
func (q Query) selection() Selection {
	return Selection{q.LabelSelector, q.FieldSelector, q.Labels, q.Fields}
}

// selections returns the query's own selection, and those of AnyOf.
func (q Query) selections() []Selection { return append([]Selection{q.selection()}, q.AnyOf...) }

// selects reports whether the selection narrows anything.
func (q Selection) selects() bool {
	return q.LabelSelector != "" || q.FieldSelector != "" || q.Labels != nil || q.Fields != nil
}

// selectors returns the selectors, those in words parsed; nil where there are none.
func (q Selection) selectors() (l labels.Selector, f fields.Selector, err error) {
	if l, err = parseLabels("label", q.LabelSelector); err != nil {
		return nil, nil, err
	}
	if f, err = parseSelector("field", q.FieldSelector, fields.ParseSelector); err != nil {
		return nil, nil, err
	}
	also := stream.Selection{Labels: q.Labels, Fields: q.Fields}
	if err := selectsSome(also); err != nil {
		return nil, nil, err
	}
	both := stream.Selection{Labels: l, Fields: f}.And(also)
	return both.Labels, both.Fields, nil
}

// selectsSome returns an error for a selector that selects everything or nothing. The program that
// made it meant something else.
func selectsSome(s stream.Selection) error {
	if s.Labels != nil {
		if some, selectable := s.Labels.Requirements(); !selectable {
			return fmt.Errorf("label selector: %w", errSelectsNothing)
		} else if len(some) == 0 {
			return fmt.Errorf("label selector: %w", errSelectsAll)
		}
	}
	if s.Fields != nil {
		switch {
		case s.Fields.Empty():
			return fmt.Errorf("field selector: %w", errSelectsAll)
		case len(s.Fields.Requirements()) == 0:
			return fmt.Errorf("field selector: %w", errSelectsNothing)
		}
	}
	return nil
}

var (
	// errSelectsAll is the error of a selector that is there, but selects everything, like " ",
	// "," and labels.Everything(). The program that composed it meant fewer objects, and may be
	// about to delete them.
	errSelectsAll = errors.New("it says nothing, so everything would be selected: leave it empty for that")
	// errSelectsNothing is the error of labels.Nothing() and its like.
	errSelectsNothing = errors.New("it selects nothing")
)

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
