package collect

import (
	"errors"
	"slices"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
)

// A change goes this way:
//
//	start ─▶ enqueue ─▶ settled ─▶ Advance: try all ─▶ commit all, in the reader's turn
//	             └───── before the first snapshot is complete: at once
//
// One lock guards which queries there are, and whether the first snapshot is complete. So a change
// comes before the first signal, and takes effect at once, or it comes after, and waits. A query
// that was replaced before the first signal delays nothing.

// enqueue adds a change to those that wait. A change that waits already and has one of its names is
// part of it from now on. Before the first snapshot is complete, nothing was shown: then the change
// does not wait, and takes effect at once. enqueue does not block.
// end closes what is left out; it is called without locks.
func (r *roster[S]) enqueue(ch *change[S]) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ended(); err != nil { // the end closes those that it sees
		return ch.close, err
	}
	if !r.course.isComplete() {
		return r.take(ch), nil
	}
	names := make(map[string]bool)
	for _, f := range ch.fields {
		names[f.Name] = true
	}
	ours := func(f *Field[S]) bool { return names[f.Name] }
	var apart []*change[S]
	for _, old := range r.changes {
		if slices.ContainsFunc(old.fields, ours) {
			ch.fields = append(ch.fields, slices.DeleteFunc(slices.Clone(old.fields), ours)...)
		} else {
			apart = append(apart, old)
		}
	}
	end = r.leave(func(name string) bool { return names[name] })
	r.changes = append(apart, ch)
	return end, nil
}

// take has a change take effect: its queries are those that there are. end closes the old ones; it
// is called without locks. Called with mu held.
func (r *roster[S]) take(ch *change[S]) (end func()) {
	fields := slices.Clone(r.fields)
	var ends []func()
	for _, f := range ch.fields {
		if i := slices.IndexFunc(fields, named[S](f.Name)); i < 0 {
			fields = append(fields, f)
		} else {
			ends = append(ends, fields[i].Query.Close)
			fields[i] = f.inPlaceOf(fields[i])
		}
	}
	r.set(fields)
	return endAll(ends)
}

// inPlaceOf returns the field that has the place of another one from now on. The reader has what it
// had of that one.
func (f *Field[S]) inPlaceOf(former *Field[S]) *Field[S] {
	now := &Field[S]{Name: f.Name, Shown: former.Shown, Present: former.Present, Taken: f.Taken}
	var took bool
	if now.Query, took = refs.Succeed(former.Query, f.Query, f.Taken); took {
		now.Taken = query.Batch{}
	} else if now.Taken.OK() {
		now.Taken.Breaks |= former.Taken.Breaks // the reader has not taken that
	}
	now.counted.Store(f.counted.Load())
	return now
}

// drop removes queries, also those that wait. end closes them; it is called without locks.
func (r *roster[S]) drop(names []string) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ended(); err != nil {
		return func() {}, err
	}
	is := func(name string) bool { return slices.Contains(names, name) }
	ends := []func(){r.leave(is)}
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

// ErrNotAlone says that a change can take effect, but only after another one that waits, or with
// it.
var ErrNotAlone = errors.New("it waits for another change")

// Advance has the changes take effect whose queries can all be shown. fits returns an error if the
// reader cannot show the queries that there would be; then nothing has changed. It belongs to the
// reader's turn, before Take.
func (c *Collector[S]) Advance(fits func([]query.Query) error) error {
	for _, ch := range c.waiting() {
		if !c.settled(ch) {
			continue
		}
		switch err := fits(c.queriesWith(ch)); {
		case errors.Is(err, ErrNotAlone):
			continue // another change that waits makes it fit
		case err != nil:
			return err
		case c.try(ch):
			c.commit(ch)
		}
	}
	return nil
}

// queriesWith returns the queries that there would be with a change.
func (r *roster[S]) queriesWith(ch *change[S]) (all []query.Query) {
	names := make(map[string]bool)
	for _, f := range r.Fields() {
		if next := ch.named(f.Name); next != nil {
			f = next
		}
		names[f.Name] = true
		all = append(all, f.Query.Query())
	}
	for _, f := range ch.fields {
		if !names[f.Name] {
			all = append(all, f.Query.Query())
		}
	}
	return all
}

// settled reports whether all queries of a change can be shown, as far as that is known without
// the reader's turn.
func (r *roster[S]) settled(ch *change[S]) bool {
	all := true
	for _, f := range ch.fields { // each is asked: that has the server asked for those that are late
		all = refs.CanFollow(f.Query, r.former(f)) && all
	}
	return all
}

// former returns the query that has the name of a field, nil if there is none.
func (r *roster[S]) former(f *Field[S]) query.Running {
	if old := r.named(f.Name); old != nil {
		return old.Query
	}
	return nil
}

// try takes the first batch of each query of a change. If one has none, none is taken.
func (r *roster[S]) try(ch *change[S]) bool {
	for i, f := range ch.fields {
		if !f.try(r.former(f)) {
			(&change[S]{ch.fields[:i]}).untry()
			return false
		}
	}
	return true
}

func (f *Field[S]) try(former query.Running) bool {
	refs.Foresee(former, f.Query)
	if !refs.CanFollow(f.Query, former) {
		return false
	}
	f.Taken = f.Query.Take(false)
	switch empty := f.Query.Phase() == query.Empty; {
	case f.Taken.OK():
	case empty && former != nil:
		f.Taken = query.Emptied
	case !empty:
		f.Query.Untake()
		return false
	}
	f.counted.Store(true)
	return true
}

func (ch *change[S]) untry() {
	for _, f := range ch.fields {
		f.Taken = query.Batch{}
		f.Query.Untake()
	}
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
