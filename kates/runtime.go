package kates

import (
	"context"
	"fmt"
	"reflect"
)

// Add adds queries while the watch runs. Snapshots and signals of the others go on; a new one's field is
// filled from the snapshot on by which it has its whole first list, and nil until then. The structs given to
// Update must have a field for it.
//
// Errors are those of [Client.Watch]; on an error none of the queries is added. The context bounds the call only.
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

// Remove ends the queries of these names while the watch runs. Their objects are deletions among the
// deltas of the next snapshot, and their fields are nil from then on. A name that no query has is an error, and
// then none is removed.
func (a *Accumulator) Remove(ctx context.Context, names ...string) error {
	if err := a.acc.Remove(ctx, names...); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

// Replace replaces the query of the same name while the watch runs: by other namespaces, other selectors, another
// kind. Objects that both queries want stay, without a request or a delta. The others stay until
// all of the new query has been listed, and then change in one snapshot; those in namespaces that
// the new one does not name leave at once.
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

// Add adds queries for fields of S that have none: those that [Snapshots.Remove] left without, and those with the tag
// `kates:"-"`. See [Accumulator.Add].
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

// Replace is [Accumulator.Replace]. As for [Watch], what the field's type and tag say holds as well.
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

// check reports a field that cannot take its query.
func (s *Snapshots[S]) check(targets []target) error {
	return checkStruct(reflect.TypeFor[S](), targets)
}

// targets are queries for fields of S by their names.
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

// isReport reports whether a field receives what a snapshot says about itself.
func isReport(t reflect.Type) bool {
	return t == reflect.TypeFor[[]*Delta]() || t == reflect.TypeFor[[]Invalid]()
}
