package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
)

// change is queries that take effect together: those that a call has added or replaced. It waits
// until all of them can be shown. Meanwhile snapshots go on with the old queries. Once made, it
// does not change.
type change[S any] struct{ members []member[S] }

// member is one query of a change.
type member[S any] struct {
	// field is the one that is added, or the one whose query has a successor.
	field     *Field[S]
	successor *query.Successor // nil: the field is added
}

func (m member[S]) added() bool { return m.successor == nil }

// close ends a query that nobody awaits.
func (m member[S]) close() {
	if m.added() {
		m.field.Query.Close()
	} else {
		m.successor.Close()
	}
}

// settled reports whether all queries of a change can be shown, as far as that is known without
// the reader's turn.
func (ch *change[S]) settled() bool {
	all := true
	for _, m := range ch.members {
		all = m.settled() && all // each is asked: that has the server asked for those that are late
	}
	return all
}

func (m member[S]) settled() bool {
	q := m.field.Query
	if !m.added() {
		return q.Settled()
	}
	return q.Phase() >= query.Complete && q.Fresh()
}

// Add adds queries. Snapshots and signals of the others go on. All new queries are in one
// snapshot, as soon as each has its whole first list. Add returns an error, and adds none of them,
// if a name is taken, or if a kind cannot be resolved and its query is not optional.
func (c *Collector[S]) Add(ctx context.Context, queries ...query.Query) error {
	return c.start(ctx, queries, func() error {
		names := c.wanted()
		for _, q := range queries {
			if _, taken := names[q.Name]; taken {
				return q.Error(errors.New("there is one of that name already"))
			}
			names[q.Name] = nil
		}
		return nil
	})
}

// Replace replaces the queries of these names: other namespaces, selectors, another kind. The old
// ones go on until each new one can be shown: then one snapshot has all objects of the new ones,
// and none that only the old ones had. An object of both stays as it is. A query that is replaced
// again before that is left out, and the others wait for the newest. An error changes nothing.
func (c *Collector[S]) Replace(ctx context.Context, queries ...query.Query) error {
	return c.start(ctx, queries, func() error {
		names, seen := c.wanted(), make(map[string]bool)
		for _, q := range queries {
			switch f := names[q.Name]; {
			case f == nil:
				return q.Error(query.ErrUnknownQuery)
			case seen[q.Name]:
				return q.Error(errors.New("there are two of that name"))
			case f.Query.Query().Refs != nil:
				return q.Error(query.ErrRefsAtRunTime)
			}
			seen[q.Name] = true
		}
		return nil
	})
}

// start starts queries beside those that there are, and has them take effect together, if they
// suit those that there are. It asks the server for their kinds before it has others wait: other
// changes may come first, so it looks again whether they suit.
func (c *Collector[S]) start(ctx context.Context, queries []query.Query, suit func() error) error {
	allowed := func() error {
		if err := c.Err(); err != nil {
			return err
		}
		if err := suit(); err != nil {
			return err
		}
		return c.check(queries, nil)
	}
	if err := allowed(); err != nil {
		return err
	}
	queries = c.wholeForRefs(queries)
	found, err := query.FindAll(ctx, c.witnessed(queries))
	if err != nil {
		return err
	}
	return c.edit(ctx, func() error {
		if err := allowed(); err != nil {
			return err
		}
		return c.connect(ctx, found)
	})
}

// wholeForRefs has queries hold whole objects if Refs of a running query read more of them than
// they would hold.
func (c *Collector[S]) wholeForRefs(queries []query.Query) []query.Query {
	queries = slices.Clone(queries)
	for _, running := range c.wanted() {
		for _, ref := range running.Query.Query().Refs {
			i := slices.IndexFunc(queries, func(q query.Query) bool { return q.Name == ref.Query })
			if i >= 0 && !ref.Reads(queries[i].Form) {
				queries[i].Form, queries[i].Transform = object.Whole, queries[i].WholeTransform
			}
		}
	}
	return queries
}

// connect starts queries whose kinds were looked for. It sends no request.
func (c *Collector[S]) connect(ctx context.Context, queries []query.Found) error {
	ch, fields := &change[S]{}, c.Fields()
	for _, q := range queries {
		m, err := c.open(ctx, fields, q)
		if err != nil {
			ch.close()
			return err
		}
		ch.members = append(ch.members, m)
	}
	end, err := c.await(ch)
	end()
	return err
}

// check asks the reader whether it can show the queries that would be wanted.
func (c *Collector[S]) check(changed []query.Query, removed []string) error {
	if c.reader.Check == nil {
		return nil
	}
	all := c.Queries()
	all = slices.DeleteFunc(all, func(q query.Query) bool { return slices.Contains(removed, q.Name) })
	for _, q := range changed {
		if i := slices.IndexFunc(all, func(old query.Query) bool { return old.Name == q.Name }); i >= 0 {
			all[i] = q
		} else {
			all = append(all, q)
		}
	}
	return c.reader.Check(all)
}

// checkShown asks the reader whether it can go on without some of the queries that are shown.
func (c *Collector[S]) checkShown(removed []string) error {
	if c.reader.Check == nil || !c.ready.passed.Load() {
		return nil
	}
	var left []query.Query
	for _, f := range c.Fields() {
		if !slices.Contains(removed, f.Name) {
			left = append(left, f.Query.Query())
		}
	}
	return c.reader.Check(left)
}

// open starts a query: the successor of the one that has its name, or one that is added.
func (c *Collector[S]) open(ctx context.Context, fields []*Field[S], q query.Found) (m member[S], err error) {
	if i := slices.IndexFunc(fields, named[S](q.Name())); i >= 0 {
		m.field = fields[i]
		m.successor, err = m.field.Query.Succeed(ctx, q)
		return m, err
	}
	running, err := query.Open(ctx, c.host, q)
	if err != nil {
		return m, err
	}
	m.field = c.field(q.Name(), running)
	return m, nil
}

func named[S any](name string) func(*Field[S]) bool {
	return func(f *Field[S]) bool { return f.Name == name }
}

func (ch *change[S]) close() {
	for _, m := range ch.members {
		m.close()
	}
}

// Remove removes queries. The next snapshot lacks their objects, and its differences have them as
// deletes. If they wait for others that were added or replaced with them, those go on without.
func (c *Collector[S]) Remove(ctx context.Context, names ...string) error {
	return c.edit(ctx, func() error {
		wanted := c.wanted()
		for _, name := range names {
			f := wanted[name]
			if f == nil {
				return query.Query{Name: name}.Error(query.ErrUnknownQuery)
			}
			q := f.Query.Query()
			if _, naming := f.Query.(query.Naming); naming || q.Refs != nil {
				return q.Error(query.ErrRefsAtRunTime)
			}
			delete(wanted, name)
		}
		if err := c.check(nil, names); err != nil {
			return err
		}
		if err := c.checkShown(names); err != nil {
			return fmt.Errorf("what is to replace another query is not shown yet: %w", err)
		}
		end, err := c.drop(names)
		end()
		return err
	})
}

// edit makes one change of the queries at a time.
func (c *Collector[S]) edit(ctx context.Context, change func() error) error {
	return c.upkeep.edit(ctx, func() error {
		if err := c.Err(); err != nil {
			return err
		}
		return change()
	})
}
