package collect

import (
	"slices"
	"sync/atomic"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/query"
)

// roster is which queries a collector has, and which of them the reader has shown.
type roster[S any] struct {
	ended func() error // the cause of the collector's end, nil before; set once
	ready *atomic.Bool // the first snapshot is complete; set once

	mu         lockorder.Mutex[lockorder.Roster]
	fields     []*Field[S]  // replaced together with generation, never changed
	generation int          // how often they have changed, from 1
	shown      int          // the generation of the last snapshot; 0: there is none
	changes    []*change[S] // those that no snapshot shows yet; no name is in two of them
}

// Fields returns the queries. They are replaced together, never changed.
func (r *roster[S]) Fields() []*Field[S] {
	all, _ := r.FieldsNow()
	return all
}

// FieldsNow returns the queries, and how often they have changed, from 1.
func (r *roster[S]) FieldsNow() (all []*Field[S], generation int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fields, r.generation
}

// all returns the queries, and after them those that were added and wait to be shown. waits
// reports for each whether it, or a successor, waits.
func (r *roster[S]) all() (fields []*Field[S], waits map[*Field[S]]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fields = slices.Clone(r.fields)
	if r.changes == nil {
		return fields, nil
	}
	waits = make(map[*Field[S]]bool)
	for _, ch := range r.changes {
		for _, m := range ch.members {
			waits[m.field] = true
			if m.added() {
				fields = append(fields, m.field)
			}
		}
	}
	return fields, waits
}

// incomplete returns the queries that delay the first snapshot.
func (r *roster[S]) incomplete() (all []query.Status) {
	for _, f := range r.Fields() {
		if f.phase() < query.Complete {
			all = append(all, f.Query.Status())
		}
	}
	return all
}

// Queries returns the queries that are wanted, in their order: also those that wait to be shown.
func (r *roster[S]) Queries() []query.Query {
	fields, _ := r.all()
	all := make([]query.Query, len(fields))
	for i, f := range fields {
		all[i] = f.Query.Wanted()
	}
	return all
}

// running returns the queries, also those that wait to be shown.
func (r *roster[S]) running() []query.Running {
	fields, _ := r.all()
	all := make([]query.Running, len(fields))
	for i, f := range fields {
		all[i] = f.Query
	}
	return all
}

// wanted returns the fields of all queries that the user wants, by name.
func (r *roster[S]) wanted() map[string]*Field[S] {
	fields, _ := r.all()
	all := make(map[string]*Field[S], len(fields))
	for _, f := range fields {
		all[f.Name] = f
	}
	return all
}

// waiting returns the changes that no snapshot shows yet.
func (r *roster[S]) waiting() []*change[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// Delivered reports whether there has been a snapshot.
func (r *roster[S]) Delivered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown > 0
}

// Deliver notes that a snapshot shows the queries of a generation, see FieldsNow. It belongs to
// the reader's turn.
func (r *roster[S]) Deliver(generation int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = generation
}

// changed reports whether the queries are others than those shown.
func (r *roster[S]) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation != max(1, r.shown)
}

// set replaces the queries. Called with mu held.
func (r *roster[S]) set(fields []*Field[S]) {
	r.fields = fields
	r.generation++
}

// leave takes queries out of the changes that wait, and returns what ends them. Called with mu
// held.
func (r *roster[S]) leave(is func(name string) bool) (ends []func()) {
	var kept []*change[S]
	for _, ch := range r.changes {
		rest := &change[S]{}
		for _, m := range ch.members {
			switch {
			case !is(m.field.Name):
				rest.members = append(rest.members, m)
			case m.added():
				ends = append(ends, m.field.Query.Close)
			default:
				ends = append(ends, m.field.Query.Await(nil))
			}
		}
		switch len(rest.members) {
		case 0:
		case len(ch.members):
			kept = append(kept, ch)
		default:
			kept = append(kept, rest)
		}
	}
	r.changes = kept
	return ends
}

// endAll is several ends as one.
func endAll(ends []func()) func() {
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
