package partition

import (
	"context"
	"errors"
	"slices"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
)

// Queries may change while keys are handed out. A query keeps its place among the fields, also
// when it is removed: its objects leave all partitions, and the deltas of the next turns have
// them. A query that is added takes the place of a removed one of its name, or a new one.

// Add adds queries. Turns go on. All new queries are in the same turns, as soon as each has its
// whole first list. Add returns an error, and adds none of them, if a name is taken, the struct
// type does not suit, or a kind cannot be resolved and its query is not optional.
func (p *Partitions) Add(ctx context.Context, queries ...query.Query) error {
	return p.sharing.oneByOne(ctx, func() error {
		return p.collector.Add(ctx, p.marked(queries, slices.Concat(queries, wantedNow(p)))...)
	})
}

// Remove removes queries. It is an error if no query with a key function is left.
func (p *Partitions) Remove(ctx context.Context, names ...string) error {
	return p.collector.Remove(ctx, names...)
}

// Replace replaces the queries of these names, also by ones with other key functions. The old ones
// go on until each new one can be shown. No turn has objects of some of the new ones and some of
// the old. A key has a turn if its objects change by that. An error changes nothing.
func (p *Partitions) Replace(ctx context.Context, queries ...query.Query) error {
	return p.sharing.oneByOne(ctx, func() error {
		return p.collector.Replace(ctx, p.marked(queries, slices.Concat(queries, wantedNow(p)))...)
	})
}

// Given returns what a query that is wanted was made of, nil if there is none of that name.
func (p *Partitions) Given(name string) *query.Given { return p.collector.Given(name) }

// suits returns an error if there cannot be partitions of some queries.
func (x *indexes) suits(queries []query.Query) error {
	if !slices.ContainsFunc(queries, func(q query.Query) bool { return q.Key != nil }) {
		return errors.New("no query has a key function: there would be no partition")
	}
	b, err := query.Compile(x.typ, queries)
	if err != nil {
		return err
	}
	for i, q := range queries {
		if b.NewTable(i).IsLookup() && q.Key != nil {
			return q.Error(errors.New("it has a key function, but what is looked up belongs to no partition"))
		}
	}
	return nil
}

// suitNow is suits for queries some of which wait. All that is wanted suits: that was checked.
func (x *indexes) suitNow(queries []query.Query) error {
	if x.suits(queries) != nil {
		return collect.ErrNotAlone
	}
	return nil
}

// adapt takes the queries that there are now, if they have changed. It belongs to the reader's
// turn.
func (p *Partitions) adapt() error {
	now, generation := p.collector.FieldsNow()
	if generation == p.generation {
		return nil
	}
	fields := slices.Clone(p.indexes.fields)
	for i, f := range fields {
		switch next := named(now, f.Name); {
		case next == nil:
			f.Taken = query.Emptied
		case next != f:
			p.indexes.succeed(f, next)
			fields[i] = next
		}
	}
	for _, f := range now {
		if named(fields, f.Name) == nil {
			fields = append(fields, f)
		}
	}
	respelled, err := p.indexes.set(fields)
	if err != nil {
		return err
	}
	p.scheduler.extend(len(fields), p.indexes.lookup)
	if respelled {
		p.scheduler.activateForced()
	}
	p.current, p.generation = now, generation
	p.sharing.adapted()
	p.quiet = p.quietOwn || slices.ContainsFunc(now, func(f *field) bool { return f.Query.Query().Signal != nil })
	return nil
}

func named(fields []*field, name string) *field {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// succeed hands the objects of a query that was removed to one of its name that was added since.
func (x *indexes) succeed(f, next *field) {
	x.mu.Lock()
	*next.Shown, next.Present = *f.Shown, f.Present
	x.mu.Unlock()
	if !next.Taken.OK() {
		// a query whose objects name others has its first batch at hand
		if _, naming := next.Query.(refs.Naming); !naming && f.Present && next.Query.Phase() == query.Empty {
			next.Taken = query.Emptied
		}
		return
	}
	next.Taken.ComesAfter(f.Query, next.Query)
}

// set sets the fields, in the order of their places. It reports whether the keys of a map are
// spelled in another way now.
func (x *indexes) set(fields []*field) (respelled bool, err error) {
	queries := make([]query.Query, len(fields))
	for i, f := range fields {
		queries[i] = f.Query.Query()
	}
	b, err := query.Compile(x.typ, queries)
	if err != nil {
		return false, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.binding, x.fields = b, fields
	for i, f := range fields {
		ix, spans := f.Shown, queries[i].Namespace == ""
		switch {
		case ix.shared == nil:
			ix.shared = b.NewTable(i)
		case ix.spans != spans && x.isMap(f.Name):
			ix.shared = copied(ix.shared, b.NewTable(i))
			respelled = true
		}
		ix.spans = spans
	}
	return respelled, nil
}
