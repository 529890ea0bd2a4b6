package kates

import (
	"context"
	"fmt"
	"reflect"
)

// Add adds queries while the watch runs. Snapshots and signals of the others go on. The field of
// a new query is nil until its first list is complete. The structs given to Update must have a
// field for it.
//
// Errors are those of [Client.Watch]; on an error none of the queries is added. The context
// bounds only the call.
func (a *Accumulator) Add(ctx context.Context, queries ...Query) error {
	targets := make([]target, len(queries))
	for i, q := range queries {
		targets[i] = target{Query: q}
	}
	compiled, err := a.client.compile(targets)
	if err == nil {
		err = a.acc.Add(ctx, compiled...)
	}
	if err != nil {
		return fmt.Errorf("add: %w", err)
	}
	return nil
}

// Remove ends the queries of these names while the watch runs. Their objects are deletions among
// the deltas of the next snapshot, and their fields are nil from then on. A name that no query
// has is an error, and then none is removed.
func (a *Accumulator) Remove(ctx context.Context, names ...string) error {
	if err := a.acc.Remove(ctx, names...); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

// Replace replaces the query of the same name while the watch runs: by other namespaces, other
// selectors, or another kind. Objects of both queries stay, without a request or a delta. The
// others stay until the new query's first list is complete, and then change in one snapshot.
// Objects in namespaces that the new query does not name leave at once.
func (a *Accumulator) Replace(ctx context.Context, query Query) error {
	compiled, err := a.client.compile([]target{{Query: query}})
	if err == nil {
		err = a.acc.Replace(ctx, compiled[0])
	}
	if err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	return nil
}

// Add adds queries for fields of S that have none: those whose query [Snapshots.Remove] has
// removed, and those with the tag `kates:"-"`. See [Accumulator.Add].
func (s *Snapshots[S]) Add(ctx context.Context, queries ...Query) error {
	targets, err := s.targets(ctx, queries)
	if err == nil {
		err = s.check(targets)
	}
	if err != nil {
		return fmt.Errorf("add: %w", err)
	}
	compiled, err := s.client.compile(targets)
	if err == nil {
		err = s.acc.Add(ctx, compiled...)
	}
	if err != nil {
		return fmt.Errorf("add: %w", err)
	}
	return nil
}

// Remove is [Accumulator.Remove].
func (s *Snapshots[S]) Remove(ctx context.Context, names ...string) error {
	if err := s.acc.Remove(ctx, names...); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

// Replace is [Accumulator.Replace]. As for [Watch], the field's type and tag apply too.
func (s *Snapshots[S]) Replace(ctx context.Context, query Query) error {
	targets, err := s.targets(ctx, []Query{query})
	if err == nil {
		err = s.check(targets)
	}
	if err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	compiled, err := s.client.compile(targets)
	if err == nil {
		err = s.acc.Replace(ctx, compiled[0])
	}
	if err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	return nil
}

// check returns an error for a field that cannot hold its query.
func (s *Snapshots[S]) check(targets []target) error {
	return checkStruct(reflect.TypeFor[S](), targets)
}

// targets returns the queries with the fields of S that they are for, by name.
func (s *Snapshots[S]) targets(ctx context.Context, queries []Query) ([]target, error) {
	t := reflect.TypeFor[S]()
	targets := make([]target, len(queries))
	for i, q := range queries {
		sf, ok := t.FieldByName(q.Name)
		if !ok || !sf.IsExported() || isReport(sf.Type) {
			return nil, fmt.Errorf("query %q: %s has no exported field of that name that could be a query", q.Name, t)
		}
		tag, tagged := sf.Tag.Lookup("kates")
		if tag == "-" {
			tag = ""
		}
		var err error
		if targets[i], err = s.client.fieldTarget(ctx, sf, tag, tagged, q, true); err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
	}
	return targets, nil
}

// isReport reports whether a field is a report of the snapshot and not a query.
func isReport(t reflect.Type) bool {
	return t == reflect.TypeFor[[]*Delta]() || t == reflect.TypeFor[[]Invalid]()
}
