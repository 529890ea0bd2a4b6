package collect

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/kates-go/kates/accumulator/query"
)

// Add adds queries. The signals and snapshots of the others go on. A new query is in the snapshot
// as soon as it has its whole first list. Add returns an error, and adds none of them, if a name
// is taken, or if a kind cannot be resolved and its query is not optional.
func (c *Collector[S]) Add(ctx context.Context, queries ...query.Query) error {
	return c.edit(ctx, func() error {
		var fresh []*Field[S]
		err := c.open(ctx, queries, &fresh)
		if err == nil {
			err = c.set(slices.Concat(c.Fields(), fresh), c.Err)
		}
		if err != nil {
			closeFields(fresh)
		}
		return err
	})
}

// open starts queries. Those that were started when one fails are for the caller to close.
func (c *Collector[S]) open(ctx context.Context, queries []query.Query, fresh *[]*Field[S]) error {
	names := make(map[string]bool)
	for _, f := range c.Fields() {
		names[f.Name] = true
	}
	for _, q := range queries {
		switch {
		case names[q.Name]:
			return q.Error(errors.New("there is one of that name already"))
		case q.Refs != nil:
			return q.Error(query.ErrRefsAtRunTime)
		}
		names[q.Name] = true
		running, err := query.Open(ctx, c.host, q)
		if err != nil {
			return err
		}
		*fresh = append(*fresh, c.field(q.Name, running))
	}
	return nil
}

func closeFields[S query.Shown](fields []*Field[S]) {
	for _, f := range fields {
		f.Query.Close()
	}
}

// Remove removes queries. The next snapshot lacks their objects, and its differences have them as
// deletes.
func (c *Collector[S]) Remove(ctx context.Context, names ...string) error {
	return c.edit(ctx, func() error {
		kept := slices.Clone(c.Fields())
		var gone []*Field[S]
		for _, name := range names {
			i := slices.IndexFunc(kept, func(f *Field[S]) bool { return f.Name == name })
			if i < 0 {
				return query.Query{Name: name}.Error(query.ErrUnknownQuery)
			}
			q := kept[i].Query
			if _, naming := q.(query.Naming); naming || q.Query().Refs != nil {
				return q.Query().Error(query.ErrRefsAtRunTime)
			}
			gone = append(gone, kept[i])
			kept = slices.Delete(kept, i, i+1)
		}
		if err := c.set(kept, c.Err); err != nil {
			return err
		}
		closeFields(gone)
		return nil
	})
}

// Replace replaces the query of the same name: other namespaces, selectors, another kind. Objects
// of both queries stay as they are. Objects of the old one alone stay until the new one is
// complete, but those in namespaces that are no longer wanted leave at once.
func (c *Collector[S]) Replace(ctx context.Context, q query.Query) error {
	return c.edit(ctx, func() error {
		fields := c.Fields()
		i := slices.IndexFunc(fields, func(f *Field[S]) bool { return f.Name == q.Name })
		if i < 0 {
			return q.Error(query.ErrUnknownQuery)
		}
		running := fields[i].Query
		if q.Refs != nil || running.Query().Refs != nil {
			return q.Error(query.ErrRefsAtRunTime)
		}
		r, err := q.Resolve(ctx)
		if err != nil {
			return q.Error(err)
		}
		if err := running.Replace(ctx, q, r); err != nil {
			return cmp.Or(c.Err(), err) // the end has a cause
		}
		return c.set(fields, c.Err) // its keys may have another form now
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
