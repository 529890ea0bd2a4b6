package compile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// Compiler compiles queries for one client and one choice of watch options.
type Compiler struct {
	*core.Core
	// Untyped: no stream has Go types.
	Untyped bool
	// Keyed: the readers ask the Keys of queries.
	Keyed bool
	// Transform is for queries without one.
	Transform *Transform
	// Wrong is what is wrong with a watch option. No watch starts then.
	Wrong error
}

// All compiles the queries of one watch. Every error names its query.
func (c *Compiler) All(all []Wanted) ([]query.Query, error) {
	if len(all) == 0 {
		return nil, errors.New("nothing to watch: no query was given")
	}
	if c.Wrong != nil {
		return nil, c.Wrong
	}
	seen := make(map[string]bool)
	var queries []query.Query
	for i, w := range all {
		switch {
		case w.Name == "":
			return nil, nameless(i, w)
		case seen[w.Name]:
			return nil, twice(w)
		case w.Kind == "" && w.GVK.Empty():
			return nil, fmt.Errorf("query %q has no kind", w.Name)
		}
		seen[w.Name] = true
		q, err := c.oneOf(w, all)
		if err != nil {
			return nil, fmt.Errorf("query %q: %w", w.Name, err)
		}
		queries = append(queries, q)
	}
	return queries, nil
}

func nameless(i int, w Wanted) error { return fmt.Errorf("query %d (kind %q) has no name", i, w.Kind) }
func twice(w Wanted) error           { return fmt.Errorf("query %q: there are two of that name", w.Name) }

// oneOf compiles one query of several.
func (c *Compiler) oneOf(w Wanted, all []Wanted) (query.Query, error) {
	if w.Transform == nil {
		w.Transform, w.byDefault = c.Transform, true
	}
	if err := c.checkTypes(&w, all); err != nil {
		return query.Query{}, err
	}
	var whole *objects.Transform
	if w.Transform != nil {
		whole = &w.Transform.Transform
	}
	if w.Form = c.projected(&w, all); w.Form.Projects() {
		w.Transform = nil // it would drop what is not held
	}
	q, err := c.one(w)
	q.WholeTransform = whole
	return q, err
}

// one compiles a query that knows no others.
func (c *Compiler) one(w Wanted) (q query.Query, err error) {
	if err := cmp.Or(w.checkNamespaces(), w.check()); err != nil {
		return q, err
	}
	q = query.Query{
		Name: w.Name, Kind: cmp.Or(w.Kind, w.GVK.Kind), Namespace: w.Namespace, Namespaces: w.Namespaces, Optional: w.Optional,
		Given: cmp.Or(w.Given, &query.Given{}), After: w.After,
		Resolve: func(ctx context.Context) (objects.Resource, error) { return c.resolve(ctx, &w, q.Watches) },
	}
	w.functionsOf(&q)
	if q.Form, err = c.form(&w); err != nil {
		return q, err
	}
	v := c.validity(&w, q.Form)
	if q.Signal != nil {
		q.Signal = v.orInvalid(q.Signal)
	}
	if v != (validity{}) {
		q.Valid = v
	}
	own, err := w.selectors()
	if err != nil {
		return q, err
	}
	q.Labels, q.Fields = own.Labels, own.Fields
	if q.Refs, err = w.refs(); err != nil {
		return q, err
	}
	if w.AnyOf != nil {
		q.AnyOf = make([]objects.Selection, len(w.AnyOf))
	}
	for i, s := range w.AnyOf {
		if q.AnyOf[i], err = s.selectors(); err != nil {
			return q, err
		}
	}
	l, err := query.ParseLabels("namespace", w.NamespaceSelector)
	if l == nil || err != nil {
		return q, err
	}
	q.Spaces = &query.Spaces{Labels: l, Resolve: func(ctx context.Context) (objects.Resource, error) {
		return c.resolve(ctx, &Wanted{Field: Field{GVK: corev1.SchemeGroupVersion.WithKind("Namespace")}}, nil)
	}}
	return q, nil
}

// functionsOf gives a query its functions.
func (w *Wanted) functionsOf(q *query.Query) {
	if k := w.Key; k != nil {
		q.Key, q.KeyOfMetadata, q.KeyedBy = k.Of, k.onlyMetadata(), k.by
	}
	if s := w.Signal; s != nil {
		q.Signal = s.Of
	}
	if in := w.Where; in != nil {
		q.Where = &in.Where
	}
	if t := w.Transform; t != nil {
		q.Transform = &t.Transform
	}
}

// resolve finds the resource of a query, and checks that the resource can be watched as the query
// wants. If it cannot, what is known of the kind may be out of date: then discovery is read again,
// once. watches returns the watches that the query needs of a resource.
func (c *Compiler) resolve(ctx context.Context, w *Wanted, watches func(objects.Resource) []objects.Spec) (objects.Resource, error) {
	r, err := c.resolveAs(ctx, w, watches)
	if errors.Is(err, query.ErrUnfit) {
		c.Kinds.Refresh(ctx)
		r, err = c.resolveAs(ctx, w, watches)
	}
	return r, err
}

// resolveAs resolves a query by what is known of its kind.
func (c *Compiler) resolveAs(ctx context.Context, w *Wanted, watches func(objects.Resource) []objects.Spec) (objects.Resource, error) {
	if err := ctx.Err(); err != nil {
		return objects.Resource{}, err
	}
	mapping, err := c.Mapping(ctx, w)
	if err != nil {
		return objects.Resource{}, definite(err, w.Optional)
	}
	if err := c.Kinds.CanWatch(ctx, mapping.Resource); err != nil {
		return objects.Resource{}, fmt.Errorf("%w: %w", query.ErrUnfit, err)
	}
	r := c.Resource(ctx, mapping)
	if w.scope != "" && w.scope != mapping.Scope.Name() {
		return r, fmt.Errorf("%w: %s have another scope than when the controller began, "+
			"and so has what they own another key: begin anew", query.ErrUnfit, r.Resource)
	}
	if err := cmp.Or(w.suits(r), c.checkKind(w, r.Kind)); err != nil {
		return r, err
	}
	if err := c.checkProjection(w, r.Kind); err != nil {
		return r, err
	}
	if err := c.checkFields(ctx, r, w); err != nil {
		return objects.Resource{}, err
	}
	return r, c.readAlternatives(ctx, &r, w, watches)
}

// Mapping returns the resource of a query's kind.
func (c *Compiler) Mapping(ctx context.Context, w *Wanted) (*meta.RESTMapping, error) {
	if w.GVK.Empty() {
		return c.Kinds.Kind(ctx, w.Kind)
	}
	return c.Kinds.GVK(ctx, w.GVK)
}

// suits returns an error for a query that makes no sense for a resource.
func (w *Wanted) suits(r objects.Resource) error {
	if r.Namespaced || w.Namespace == "" && w.Namespaces == nil && w.NamespaceSelector == "" {
		return nil
	}
	return fmt.Errorf("%w: %s are in no namespace, so leave the namespace out", query.ErrUnfit, r.Resource)
}

// definite marks an error of discovery as final where it is final.
func definite(err error, optional bool) error {
	var unknown *kinds.UnknownKindError
	switch {
	case !errors.As(err, &unknown):
		return err
	case optional:
		return fmt.Errorf("%w: %w", query.ErrNotServed, err)
	}
	return fmt.Errorf("%w: %w; a query that may go without it is optional", query.ErrNotServed, err)
}

// AtRunTime compiles queries that come while a watch of a struct type runs, for the fields that
// have their names.
func (c *Compiler) AtRunTime(ctx context.Context, s Struct, t reflect.Type, queries []Wanted) ([]query.Query, error) {
	all, err := c.WantedAtRunTime(ctx, s, t, queries)
	if err == nil {
		err = CheckStruct(t, all)
	}
	if err != nil {
		return nil, err
	}
	return c.All(all)
}

// WantedAtRunTime returns such queries with what their fields add to them.
func (c *Compiler) WantedAtRunTime(ctx context.Context, s Struct, t reflect.Type, queries []Wanted) ([]Wanted, error) {
	all := make([]Wanted, len(queries))
	for i, q := range queries {
		if err := s.MayHave(q.Name, t); err != nil {
			return nil, err
		}
		sf, _ := t.FieldByName(q.Name)
		var err error
		if all[i], err = c.OfField(ctx, &s, sf, q, true); err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		all[i].Index = sf.Index
	}
	return all, nil
}

// MayHave returns an error if no field of a struct type can have a query of that name.
func (s *Struct) MayHave(name string, t reflect.Type) error {
	sf, ok := t.FieldByName(name)
	if !ok || !sf.IsExported() || s.report(sf) != nil || isNone(t, sf.Index) {
		return noField(name, t)
	}
	return nil
}

// isNone reports whether the tag of a field, or of a struct that it is embedded in, says that it
// is no query.
func isNone(t reflect.Type, index []int) bool {
	for i := range index {
		if t.FieldByIndex(index[:i+1]).Tag.Get("kates") == "-" {
			return true
		}
	}
	return false
}

func noField(name string, t reflect.Type) error {
	if sf, ok := t.FieldByName(name); ok && isNone(t, sf.Index) {
		return fmt.Errorf("query %q: field %s has the tag `kates:\"-\"`, so it is never a query: if its query is to be added while the watch runs, the tag is `kates:\",later\"`", name, name)
	}
	return fmt.Errorf("query %q: %s has no exported field of that name that could be a query", name, t)
}

// CheckStruct returns an error unless a struct type has a fitting field for each query.
func CheckStruct(t reflect.Type, all []Wanted) error {
	queries := make([]snapshot.Query, len(all))
	for i, q := range all {
		queries[i] = snapshot.Query{Name: q.Name, SpansNamespaces: q.Namespace == ""}
	}
	_, err := snapshot.Compile(t, queries)
	return err
}
