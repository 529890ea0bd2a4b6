package kates

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/kates-go/kates/accumulator/query"
)

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

// Replace replaces the queries of these names while keys are handed out: by other namespaces, other
// selectors, other kinds, or other functions Key. All of them change together: no turn has objects
// of some new queries and some old ones. Until each new query has its first list, turns go on with
// the old ones. A key whose objects change by that has a turn, also if it comes or goes. See
// [Accumulator.Replace].
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
