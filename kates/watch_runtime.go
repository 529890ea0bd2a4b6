package kates

import (
	"context"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/accumulator/query"
)

// Add adds queries while the watch runs. Snapshots and signals of the others go on. The field of
// a new query is nil until its first list is complete. The structs given to Update must have a
// field for it.
//
// Errors are those of [Client.Watch]; on an error none of the queries is added. The context
// bounds only the call.
func (a *Accumulator) Add(ctx context.Context, queries ...Query) error {
	compiled, err := a.client.compile(targetsOf(queries))
	if err == nil {
		err = a.acc.Add(ctx, compiled...)
	}
	return while("add", err)
}

// Remove ends the queries of these names while the watch runs. Their objects are deletions among
// the deltas of the next snapshot, and their fields are nil from then on. A name that no query
// has is an error, and then none is removed.
func (w *watching) Remove(ctx context.Context, names ...string) error {
	return while("remove", w.acc.Remove(ctx, names...))
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
	return while("replace", err)
}

// Add adds queries for fields of S that have none: those whose query [Snapshots.Remove] has
// removed, and those with the tag `kates:"-"`. See [Accumulator.Add].
func (s *Snapshots[S]) Add(ctx context.Context, queries ...Query) error {
	compiled, err := s.compile(ctx, queries)
	if err == nil {
		err = s.acc.Add(ctx, compiled...)
	}
	return while("add", err)
}

// Replace is [Accumulator.Replace]. As for [Watch], the field's type and tag apply too.
func (s *Snapshots[S]) Replace(ctx context.Context, query Query) error {
	compiled, err := s.compile(ctx, []Query{query})
	if err == nil {
		err = s.acc.Replace(ctx, compiled[0])
	}
	return while("replace", err)
}

// compile returns the queries for the fields of S that have their names.
func (s *Snapshots[S]) compile(ctx context.Context, queries []Query) ([]query.Query, error) {
	t, fields := reflect.TypeFor[S](), structFields{}
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
		if targets[i], err = s.client.fieldTarget(ctx, &fields, sf, q, true); err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
	}
	if err := checkStruct(t, targets); err != nil {
		return nil, err
	}
	return s.client.compile(targets)
}
