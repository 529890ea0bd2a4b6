package collect

import (
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/internal/lockorder"
)

// roster is which queries a collector has, and which of them the reader has shown.
type roster[S query.Shown] struct {
	mu         lockorder.Mutex[lockorder.Roster]
	fields     []*Field[S] // replaced together with generation, never changed
	generation int         // how often they have changed, from 1
	shown      int         // the generation of the last snapshot; 0: there is none
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

// set replaces the queries, unless the collector has ended: the end closes those that it sees.
func (r *roster[S]) set(fields []*Field[S], ended func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ended(); err != nil {
		return err
	}
	r.fields = fields
	r.generation++
	return nil
}

// changed reports whether the queries are others than those shown.
func (r *roster[S]) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation != max(1, r.shown)
}
