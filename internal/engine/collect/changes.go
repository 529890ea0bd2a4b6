package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
	"github.com/kates-go/kates/internal/object"
)

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
			names[q.Name] = entry[S]{}
		}
		return nil
	})
}

// Replace replaces the queries of these names: other namespaces, selectors, another kind. The old
// ones go on until each new one can be shown: then one snapshot has all objects of the new ones,
// and none that only the old ones had. An object of both stays as it is. A query that is replaced
// again before that is left out, and the others wait for the newest. An error changes nothing.
func (c *Collector[S]) Replace(ctx context.Context, queries ...query.Query) error {
	started := slices.Clone(queries)
	for i := range started {
		started[i].After = nil // it is about this call
	}
	return c.start(ctx, started, func() error {
		names, seen := c.wanted(), make(map[string]bool)
		for _, q := range queries {
			switch e, there := names[q.Name]; {
			case !there:
				return q.Error(query.ErrUnknownQuery)
			case seen[q.Name]:
				return q.Error(errors.New("there are two of that name"))
			case e.wanted().Query.Query().Refs != nil:
				return q.Error(refs.ErrAtRunTime)
			case q.After != nil && q.After != e.wanted().Query.Query().Given:
				return q.Error(query.ErrOvertaken)
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
	found, err := refs.FindAll(ctx, c.witnessed(queries))
	if err != nil {
		return err
	}
	return c.edit(ctx, func() error {
		if err := allowed(); err != nil {
			return err
		}
		return c.connect(found)
	})
}

// wholeForRefs has queries hold whole objects if Refs of a running query read more of them than
// they would hold.
func (c *Collector[S]) wholeForRefs(queries []query.Query) []query.Query {
	queries = slices.Clone(queries)
	for _, q := range c.Queries() {
		for _, ref := range q.Refs {
			i := slices.IndexFunc(queries, func(q query.Query) bool { return q.Name == ref.Query })
			if i >= 0 && !ref.Reads(queries[i].Form) {
				queries[i].Form, queries[i].Transform = object.Whole, queries[i].WholeTransform
			}
		}
	}
	return queries
}

// connect starts queries whose kinds were looked for. It sends no request.
func (c *Collector[S]) connect(queries []query.Kind) error {
	ch := &change[S]{}
	for _, q := range queries {
		f := c.field(q.Query().Name, nil)
		var err error
		if f.Query, err = refs.Open(c.host, q, c.former(f)); err != nil {
			ch.close()
			return err
		}
		ch.fields = append(ch.fields, f)
	}
	end, err := c.enqueue(ch)
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
	if c.reader.Check == nil || !c.course.isComplete() {
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

// Remove removes queries. The next snapshot lacks their objects, and its differences have them as
// deletes. If they wait for others that were added or replaced with them, those go on without.
func (c *Collector[S]) Remove(ctx context.Context, names ...string) error {
	return c.edit(ctx, func() error {
		wanted := c.wanted()
		for _, name := range names {
			e, there := wanted[name]
			if !there {
				return query.Query{Name: name}.Error(query.ErrUnknownQuery)
			}
			if q := e.wanted().Query.Query(); e.naming() || q.Refs != nil {
				return q.Error(refs.ErrAtRunTime)
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
