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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/query"
	objects "github.com/kates-go/kates/internal/object"
)

// target is a query with what a struct's field adds to it.
type target struct {
	Query
	// kind is fixed by the field's Go type; empty if it is not.
	kind schema.GroupVersionKind
	// form is fixed by it, too.
	form objects.Form

	index []int        // of the field
	typ   reflect.Type // of the field that objects are put into
	role  role         // in a controller's type
	// scope of the root of a controller that owns objects: their keys go by it. Else it is empty.
	scope meta.RESTScopeName
	// labelled: objects are looked up by their labels.
	labelled bool
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
func (t target) formOf() objects.Form {
	if t.MetadataOnly {
		return objects.Metadata
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
		whole := t.Transform
		if t.form = c.projected(t, targets); t.form.Projects() {
			t.Transform = nil // it would drop what is not held
		}
		q, err := c.compileOne(t)
		if err != nil {
			return nil, fmt.Errorf("query %q: %w", t.Name, err)
		}
		q.WholeTransform = whole
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
		Transform: t.Transform, Signal: t.Signal, Key: t.Key, KeyOfMetadata: t.keyOfMetadata(),
		Resolve: func(ctx context.Context) (objects.Resource, error) { return c.resolve(ctx, t, q.Watches) },
	}
	if q.Form, err = c.form(t); err != nil {
		return q, err
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
		q.AnyOf = make([]objects.Selection, len(t.AnyOf))
	}
	for i, s := range t.AnyOf {
		if q.AnyOf[i].Labels, q.AnyOf[i].Fields, err = s.selectors(); err != nil {
			return q, err
		}
	}
	l, err := query.ParseLabels("namespace", t.NamespaceSelector)
	if l == nil || err != nil {
		return q, err
	}
	q.Spaces = &query.Spaces{Labels: l, Resolve: func(ctx context.Context) (objects.Resource, error) {
		return c.resolve(ctx, target{kind: corev1.SchemeGroupVersion.WithKind("Namespace")}, nil)
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

// resolve finds the resource of a query and checks that it can be watched as the query wants. What
// is known of a kind that the query does not suit may be out of date. Watches are those of the query
// for a resource.
func (c *Client) resolve(
	ctx context.Context, t target, watches func(objects.Resource) []objects.Spec,
) (objects.Resource, error) {
	r, err := c.resolveAs(ctx, t, watches)
	if errors.Is(err, query.ErrUnfit) {
		c.core.Kinds.Refresh(ctx)
		r, err = c.resolveAs(ctx, t, watches)
	}
	return r, err
}

// resolveAs resolves a query by what is known of its kind.
func (c *Client) resolveAs(
	ctx context.Context, t target, watches func(objects.Resource) []objects.Spec,
) (objects.Resource, error) {
	if err := ctx.Err(); err != nil {
		return objects.Resource{}, err
	}
	mapping, err := c.mappingOf(ctx, t)
	if err != nil {
		return objects.Resource{}, definite(err, t.Optional)
	}
	if err := c.core.Kinds.CanWatch(ctx, mapping.Resource); err != nil {
		return objects.Resource{}, fmt.Errorf("%w: %w", query.ErrUnfit, err)
	}
	r := c.core.Resource(ctx, mapping)
	if t.scope != "" && t.scope != mapping.Scope.Name() {
		return r, fmt.Errorf("%w: %s have another scope than when the controller began, "+
			"and so has what they own another key: begin anew", query.ErrUnfit, r.Resource)
	}
	if err := t.suits(r); err != nil {
		return r, err
	}
	if err := c.projects(t, r.Kind); err != nil {
		return r, err
	}
	if err := c.checkFields(ctx, r, t); err != nil {
		return objects.Resource{}, err
	}
	return r, c.readAlternatives(ctx, &r, t, watches)
}

// mappingOf returns the resource of a target's kind.
func (c *Client) mappingOf(ctx context.Context, t target) (*meta.RESTMapping, error) {
	if t.kind.Empty() {
		return c.core.Kinds.Kind(ctx, t.Kind)
	}
	return c.core.Kinds.GVK(ctx, t.kind)
}

// suits returns an error for a query that makes no sense for a resource.
func (q Query) suits(r objects.Resource) error {
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

// runtimeTargets returns what queries that come at run time watch, for the fields of a struct type
// that have their names.
func (c *Client) runtimeTargets(ctx context.Context, fields structFields, t reflect.Type, queries []Query) ([]target, error) {
	targets := make([]target, len(queries))
	for i, q := range queries {
		sf, ok := t.FieldByName(q.Name)
		if ok {
			report, _ := fields.report(sf)
			ok = sf.IsExported() && report == nil
		}
		if !ok {
			return nil, fmt.Errorf("query %q: %s has no exported field of that name that could be a query", q.Name, t)
		}
		var err error
		if targets[i], err = c.fieldTarget(ctx, &fields, sf, q, true); err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		targets[i].index = sf.Index
	}
	return targets, nil
}

// compileAtRunTime returns such queries in the accumulator's form.
func (c *Client) compileAtRunTime(ctx context.Context, t reflect.Type, queries []Query) ([]query.Query, error) {
	targets, err := c.runtimeTargets(ctx, structFields{}, t, queries)
	if err != nil {
		return nil, err
	}
	if err := checkStruct(t, targets); err != nil {
		return nil, err
	}
	return c.compile(targets)
}

// Add adds queries, for fields of the struct that have none, while keys are handed out. Turns go
// on. All new queries are in the same turns, as soon as each has its first list; a key whose
// snapshot changes by that has a turn. Errors are those of [Snapshots.Add].
func (p *Partitions[S]) Add(ctx context.Context, queries ...Query) error {
	return p.change(ctx, "add", reflect.TypeFor[S](), queries, p.all.Add)
}

// Replace replaces the queries of these names while keys are handed out: by other namespaces,
// other selectors, other kinds, or other functions Key. All of them change together: no turn has
// objects of some new queries and some old ones. Until each new query has its first list, turns go
// on with the old ones. A key whose objects change by that has a turn, also if it comes or goes.
// See [Accumulator.Replace].
func (p *Partitions[S]) Replace(ctx context.Context, queries ...Query) error {
	return p.change(ctx, "replace", reflect.TypeFor[S](), queries, p.all.Replace)
}

// Remove ends the queries of these names while keys are handed out. Their fields are nil from then
// on, and all keys have a turn. It is an error if a name has no query, or if no query with a Key
// is left; then none is removed.
func (p *partitioned) Remove(ctx context.Context, names ...string) error {
	return while("remove", p.all.Remove(ctx, names...))
}

func (p *partitioned) change(ctx context.Context, what string, t reflect.Type, queries []Query, do func(context.Context, ...query.Query) error) error {
	compiled, err := p.client.compileAtRunTime(ctx, t, queries)
	if err == nil {
		err = do(ctx, compiled...)
	}
	return while(what, err)
}

// Add is that of a controller's [Handle].
func (r *roots) Add(ctx context.Context, queries ...Query) error {
	return r.change(ctx, "add", queries, r.all.Add)
}

// Replace is that of a controller's [Handle].
func (r *roots) Replace(ctx context.Context, queries ...Query) error {
	return r.change(ctx, "replace", queries, r.all.Replace)
}

// Remove is that of a controller's [Handle].
func (r *roots) Remove(ctx context.Context, names ...string) error {
	for _, t := range r.targets {
		if t.role == rootRole && slices.Contains(names, t.Name) {
			return fmt.Errorf("remove: query %q is the root of the controller", t.Name)
		}
	}
	return r.partitioned.Remove(ctx, names...)
}

// change compiles queries with the keys that their roles have, and changes them.
func (r *roots) change(ctx context.Context, what string, queries []Query, do func(context.Context, ...query.Query) error) error {
	targets, err := r.client.runtimeTargets(ctx, r.of, r.typ, queries)
	if err != nil {
		return while(what, err)
	}
	f := structFields{targets: slices.Clone(targets)}
	replaced := slices.ContainsFunc(targets, func(t target) bool { return t.role == rootRole })
	if !replaced { // those that are owned need the root's kind
		for _, t := range r.targets {
			if t.role == rootRole {
				f.targets = append(f.targets, t)
			}
		}
	}
	if err := r.client.keyRoles(ctx, &f); err != nil {
		return while(what, err)
	}
	compiled, err := r.client.compile(f.targets[:len(targets)])
	if err != nil {
		return while(what, err)
	}
	if replaced {
		r.reselected.Store(true)
	}
	return while(what, do(ctx, compiled...))
}
