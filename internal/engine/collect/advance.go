package collect

import (
	"errors"
	"slices"

	"github.com/kates-go/kates/internal/engine/query"
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
func (r *roster[S]) await(ch *change[S]) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ended(); err != nil { // the end closes those that it sees
		return ch.close, err
	}
	if !r.ready.Load() {
		for _, m := range ch.members {
			if !m.added() {
				m.field.Query.Await(m.successor)
			}
		}
		return r.take(ch), nil
	}
	names := make(map[string]bool)
	for _, m := range ch.members {
		names[m.field.Name] = true
	}
	joins := func(m member[S]) bool { return names[m.field.Name] }
	var apart []*change[S]
	for _, old := range r.changes {
		if slices.ContainsFunc(old.members, joins) {
			ch.members = append(ch.members, slices.DeleteFunc(slices.Clone(old.members), joins)...)
		} else {
			apart = append(apart, old)
		}
	}
	ends := r.leave(func(name string) bool { return names[name] })
	r.changes = append(apart, ch)
	for _, m := range ch.members {
		if names[m.field.Name] && !m.added() {
			ends = append(ends, m.field.Query.Await(m.successor))
		}
	}
	return endAll(ends), nil
}

// take has a change take effect: its queries are those that there are. end closes the old ones; it
// is called without locks. Called with mu held.
func (r *roster[S]) take(ch *change[S]) (end func()) {
	fields := slices.Clone(r.fields)
	var ends []func()
	for _, m := range ch.members {
		if m.added() {
			fields = append(fields, m.field)
		} else {
			ends = append(ends, m.field.Query.Switch())
		}
	}
	r.set(fields)
	return endAll(ends)
}

// drop removes queries, also those that wait. end closes them; it is called without locks.
func (r *roster[S]) drop(names []string) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ended(); err != nil {
		return func() {}, err
	}
	is := func(name string) bool { return slices.Contains(names, name) }
	ends := r.leave(is)
	var kept []*Field[S]
	for _, f := range r.fields {
		if is(f.Name) {
			ends = append(ends, f.Query.Close)
		} else {
			kept = append(kept, f)
		}
	}
	r.set(kept)
	return endAll(ends), nil
}

// due reports whether a change can take effect.
func (r *roster[S]) due() bool {
	return slices.ContainsFunc(r.waiting(), (*change[S]).settled)
}

// ErrNotAlone says that a change can take effect, but only after another one that waits, or with
// it.
var ErrNotAlone = errors.New("it waits for another change")

// Advance has the changes take effect whose queries can all be shown. fits returns an error if the
// reader cannot show the queries that there would be; then nothing has changed. It belongs to the
// reader's turn, before Take.
func (c *Collector[S]) Advance(fits func([]query.Query) error) error {
	for _, ch := range c.waiting() {
		if !ch.settled() {
			continue
		}
		switch err := fits(c.queriesWith(ch)); {
		case errors.Is(err, ErrNotAlone):
			continue // another change that waits makes it fit
		case err != nil:
			return err
		case ch.try():
			c.commit(ch)
		}
	}
	return nil
}

// queriesWith returns the queries that there would be with a change.
func (r *roster[S]) queriesWith(ch *change[S]) (all []query.Query) {
	replaced := make(map[*Field[S]]bool)
	for _, m := range ch.members {
		replaced[m.field] = !m.added()
	}
	for _, f := range r.Fields() {
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
		return f.Query.Try()
	}
	if !m.settled() {
		return false
	}
	f.Taken = f.Query.Take(f.Present)
	if f.Taken.OK() || f.Query.Phase() == query.Empty {
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
func (r *roster[S]) commit(ch *change[S]) {
	r.mu.Lock()
	i := slices.Index(r.changes, ch)
	if i < 0 || r.ended() != nil {
		r.mu.Unlock()
		ch.untry()
		return
	}
	if r.changes = slices.Delete(slices.Clone(r.changes), i, i+1); len(r.changes) == 0 {
		r.changes = nil
	}
	end := r.take(ch)
	r.mu.Unlock()
	end()
}
