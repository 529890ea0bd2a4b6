package collect

import (
	"slices"
	"sync/atomic"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
)

// roster is which queries a collector has, and which of them the reader has shown.
type roster[S any] struct {
	ended  func() error // the cause of the collector's end, nil before; set once
	course *course      // of the collector; set once

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

// entry is a query that the user wants.
type entry[S any] struct {
	shown *Field[S] // nil: it is added, and no snapshot has it yet
	next  *Field[S] // it waits to take the place of shown; nil: there is none
}

// wanted returns the field of the query as it is to be.
func (e entry[S]) wanted() *Field[S] {
	if e.next != nil {
		return e.next
	}
	return e.shown
}

// fields returns both.
func (e entry[S]) fields() []*Field[S] {
	return slices.DeleteFunc([]*Field[S]{e.shown, e.next}, func(f *Field[S]) bool { return f == nil })
}

// naming reports whether objects of the query name others.
func (e entry[S]) naming() bool {
	if e.shown == nil {
		return false
	}
	_, naming := e.shown.Query.(refs.Naming)
	return naming
}

// entries returns the queries that the user wants, in their order: those that were added, and wait
// to be shown, come last.
func (r *roster[S]) entries() (all []entry[S]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.fields {
		all = append(all, entry[S]{shown: f})
	}
	for _, ch := range r.changes {
		for _, f := range ch.fields {
			if i := slices.IndexFunc(r.fields, named[S](f.Name)); i >= 0 {
				all[i].next = f
			} else {
				all = append(all, entry[S]{next: f})
			}
		}
	}
	return all
}

// named returns the field of a name, nil if there is none that is shown.
func (r *roster[S]) named(name string) *Field[S] { return fieldOf(r.Fields(), name) }

// next returns the query that waits to take the place of a field's, nil if there is none.
func (r *roster[S]) next(f *Field[S]) query.Running {
	for _, ch := range r.waiting() {
		if next := ch.named(f.Name); next != nil {
			return next.Query
		}
	}
	return nil
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
func (r *roster[S]) Queries() (all []query.Query) {
	for _, e := range r.entries() {
		all = append(all, e.wanted().Query.Query())
	}
	return all
}

// Given returns what a query that is wanted was made of, nil if there is none of that name.
func (r *roster[S]) Given(name string) *query.Given {
	if e, there := r.wanted()[name]; there {
		return e.wanted().Query.Query().Given
	}
	return nil
}

// Running returns the queries, also those that wait to be shown.
func (r *roster[S]) Running() (all []query.Running) {
	for _, e := range r.entries() {
		for _, f := range e.fields() {
			all = append(all, f.Query)
		}
	}
	return all
}

// wanted returns the queries that the user wants, by name.
func (r *roster[S]) wanted() map[string]entry[S] {
	all := make(map[string]entry[S])
	for _, e := range r.entries() {
		all[e.wanted().Name] = e
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
func (r *roster[S]) Delivered() bool { return r.course.has(delivered) }

// Deliver notes that a snapshot shows the queries of a generation, see FieldsNow. It belongs to
// the reader's turn.
func (r *roster[S]) Deliver(generation int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = generation
	r.course.reach(delivered)
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

// leave takes queries out of the changes that wait. end closes them. Called with mu held.
func (r *roster[S]) leave(is func(name string) bool) (end func()) {
	var kept []*change[S]
	left := &change[S]{}
	for _, ch := range r.changes {
		rest := &change[S]{}
		for _, f := range ch.fields {
			if is(f.Name) {
				left.fields = append(left.fields, f)
			} else {
				rest.fields = append(rest.fields, f)
			}
		}
		switch len(rest.fields) {
		case 0:
		case len(ch.fields):
			kept = append(kept, ch)
		default:
			kept = append(kept, rest)
		}
	}
	r.changes = kept
	return left.close
}

// endAll is several ends as one.
func endAll(ends []func()) func() {
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// Field is one query of a collector.
type Field[S any] struct {
	Name  string
	Query query.Running
	// Shown is what the reader has of the query, Taken what it has taken and not shown yet. They
	// belong to the reader's turn.
	Shown S
	Taken query.Batch
	// Present: the reader has made a snapshot of the query, which is not absent. The reader sets
	// it, in its turn.
	Present bool
	// counted: the query was complete once, so the first snapshot has its objects.
	counted atomic.Bool
}

// phase returns the phase of a query, and notes whether it is complete.
func (f *Field[S]) phase() query.Phase {
	phase := f.Query.Phase()
	if phase >= query.Complete {
		f.counted.Store(true)
	}
	return phase
}

// change is queries that take effect together: those that a call has added or replaced. It waits
// until all of them can be shown. Meanwhile snapshots go on with the old queries of their names.
// Once it waits, it does not change.
type change[S any] struct{ fields []*Field[S] }

// named returns the field of a name, nil if there is none.
func (ch *change[S]) named(name string) *Field[S] { return fieldOf(ch.fields, name) }

func fieldOf[S any](fields []*Field[S], name string) *Field[S] {
	if i := slices.IndexFunc(fields, named[S](name)); i >= 0 {
		return fields[i]
	}
	return nil
}

func named[S any](name string) func(*Field[S]) bool {
	return func(f *Field[S]) bool { return f.Name == name }
}

func (ch *change[S]) close() {
	for _, f := range ch.fields {
		f.Query.Close()
	}
}

// due reports whether a change can take effect.
func (r *roster[S]) due() bool {
	return slices.ContainsFunc(r.waiting(), r.settled)
}
