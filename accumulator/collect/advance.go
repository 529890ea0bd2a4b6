package collect

import (
	"slices"

	"github.com/kates-go/kates/accumulator/query"
)

// A change goes this way:
//
//	start ─▶ await ─▶ settled ─▶ Advance: try all ─▶ commit all, in the reader's turn
//	            └──── before the first snapshot is complete: at once
//
// Whether the first snapshot is complete, and which queries there are, is decided under one lock.
// So the first signal is about the queries that the first snapshot has, or about later ones that
// can be shown, too: nobody waits for an old query that is never complete.

// await has a change wait. A change that waits already and has one of its names is part of it from
// now on. Before the first snapshot is complete, nothing was shown, so it takes effect at once.
// end closes what is left out; it is called without locks.
func (c *Collector[S]) await(ch *change[S]) (end func(), err error) {
	c.roster.mu.Lock()
	defer c.roster.mu.Unlock()
	if err := c.Err(); err != nil { // the end closes those that it sees
		return ch.close, err
	}
	if !c.ready.passed.Load() {
		for _, m := range ch.members {
			if !m.added() {
				m.field.Query.Await(m.successor)
			}
		}
		return c.take(ch), nil
	}
	names := make(map[string]bool)
	for _, m := range ch.members {
		names[m.field.Name] = true
	}
	joins := func(m member[S]) bool { return names[m.field.Name] }
	var apart []*change[S]
	for _, old := range c.changes {
		if slices.ContainsFunc(old.members, joins) {
			ch.members = append(ch.members, slices.DeleteFunc(slices.Clone(old.members), joins)...)
		} else {
			apart = append(apart, old)
		}
	}
	ends := c.leave(func(name string) bool { return names[name] })
	c.changes = append(apart, ch)
	for _, m := range ch.members {
		if names[m.field.Name] && !m.added() {
			ends = append(ends, m.field.Query.Await(m.successor))
		}
	}
	return endAll(ends), nil
}

// take has a change take effect: its queries are those that there are. end closes the old ones; it
// is called without locks. Called with mu held.
func (c *Collector[S]) take(ch *change[S]) (end func()) {
	fields := slices.Clone(c.fields)
	var ends []func()
	for _, m := range ch.members {
		if m.added() {
			fields = append(fields, m.field)
		} else {
			ends = append(ends, m.field.Query.Switch())
		}
	}
	c.set(fields)
	return endAll(ends)
}

// drop removes queries, also those that wait. end closes them; it is called without locks.
func (c *Collector[S]) drop(names []string) (end func(), err error) {
	c.roster.mu.Lock()
	defer c.roster.mu.Unlock()
	if err := c.Err(); err != nil {
		return func() {}, err
	}
	is := func(name string) bool { return slices.Contains(names, name) }
	ends := c.leave(is)
	var kept []*Field[S]
	for _, f := range c.fields {
		if is(f.Name) {
			ends = append(ends, f.Query.Close)
		} else {
			kept = append(kept, f)
		}
	}
	c.set(kept)
	return endAll(ends), nil
}

// due reports whether a change can take effect.
func (c *Collector[S]) due() bool {
	return slices.ContainsFunc(c.waiting(), (*change[S]).settled)
}

// Advance has the changes take effect whose queries can all be shown. fits returns an error if the
// reader cannot show the queries that there would be; then nothing has changed. It belongs to the
// reader's turn, before Take.
func (c *Collector[S]) Advance(fits func([]query.Query) error) error {
	for _, ch := range c.waiting() {
		if !ch.try() {
			continue
		}
		if err := fits(c.queriesWith(ch)); err != nil {
			ch.untry()
			return err
		}
		c.commit(ch)
	}
	return nil
}

// queriesWith returns the queries that there would be with a change.
func (c *Collector[S]) queriesWith(ch *change[S]) (all []query.Query) {
	replaced := make(map[*Field[S]]bool)
	for _, m := range ch.members {
		replaced[m.field] = !m.added()
	}
	for _, f := range c.Fields() {
		if replaced[f] {
			all = append(all, f.Query.Wanted())
		} else {
			all = append(all, f.Query.Query())
		}
	}
	for _, m := range ch.members {
		if m.added() {
			all = append(all, m.field.Query.Query())
		}
	}
	return all
}

// try takes the first batch of each query of a change. If one has none, none is taken.
func (ch *change[S]) try() bool {
	for i, m := range ch.members {
		if !m.try() {
			(&change[S]{ch.members[:i]}).untry()
			return false
		}
	}
	return true
}

func (ch *change[S]) untry() {
	for _, m := range ch.members {
		m.untry()
	}
}

func (m member[S]) try() bool {
	f := m.field
	if !m.added() {
		return f.Query.Try(f.Shown)
	}
	if f.Query.Phase() < query.Complete {
		return false
	}
	f.Taken = f.Query.Take(f.Shown)
	if f.Taken.OK || f.Query.Phase() == query.Empty {
		f.counted.Store(true)
		return true
	}
	f.Query.Untake()
	return false
}

func (m member[S]) untry() {
	if !m.added() {
		m.field.Query.Untry()
		return
	}
	m.field.Taken = query.Batch{}
	m.field.Query.Untake()
}

// commit has a change take effect that was tried, unless it does not wait any more: the user wants
// something else by now.
func (c *Collector[S]) commit(ch *change[S]) {
	c.roster.mu.Lock()
	i := slices.Index(c.changes, ch)
	if i < 0 || c.Err() != nil {
		c.roster.mu.Unlock()
		ch.untry()
		return
	}
	if c.changes = slices.Delete(slices.Clone(c.changes), i, i+1); len(c.changes) == 0 {
		c.changes = nil
	}
	end := c.take(ch)
	c.roster.mu.Unlock()
	end()
}
