package accumulator

import (
	"slices"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// Inspect returns what the accumulator has and has done.
func (a *Accumulator) Inspect() collect.Inspection { return a.collector.Inspect() }

// Names returns the names of the objects of a query that the last snapshot has, or leaves out, in
// order. It returns nil if there is no such query.
func (a *Accumulator) Names(query string) []object.Key {
	f := a.named(query)
	if f == nil {
		return nil
	}
	a.tables.Lock()
	defer a.tables.Unlock()
	return slices.AppendSeq(make([]object.Key, 0), f.Shown.Keys)
}

// Examine returns what there is of an object of a query. It returns false if there is no such
// query.
func (a *Accumulator) Examine(query string, key object.Key) (collect.Examined, bool) {
	f := a.named(query)
	e, ok := a.collector.Examine(query, key)
	if f == nil || !ok {
		return e, ok
	}
	a.tables.Lock()
	defer a.tables.Unlock()
	if f.Shown.table == nil {
		return e, true
	}
	if row, ok := f.Shown.table.Get(key); ok {
		if e.Err = row.Err; row.Shown() || row.Err != nil {
			e.Shown = row.Source
		}
	}
	return e, true
}

func (a *Accumulator) named(query string) *field {
	i := slices.IndexFunc(a.collector.Fields(), func(f *field) bool { return f.Name == query })
	if i < 0 {
		return nil
	}
	return a.collector.Fields()[i]
}

// Inspect returns what the reader has.
func (r *Reader) Inspect() collect.Inspection { return r.collector.Inspect() }

// Names returns the names of the objects that the reader's streams show, in order.
func (r *Reader) Names(query string) []object.Key { return r.collector.Names(query) }

// Examine returns what there is of an object.
func (r *Reader) Examine(query string, key object.Key) (collect.Examined, bool) {
	e, ok := r.collector.Examine(query, key)
	if ok {
		e.Shown = r.get(key)
	}
	return e, ok
}

// LeftOut returns some of the objects of a query that the last snapshot leaves out as invalid, in
// order.
func (a *Accumulator) LeftOut(query string, most int) (all []snapshot.Invalid) {
	f := a.named(query)
	if f == nil {
		return nil
	}
	a.tables.Lock()
	defer a.tables.Unlock()
	if f.Shown.table == nil {
		return nil
	}
	for _, row := range f.Shown.table.Invalid() {
		if len(all) == most {
			break
		}
		all = append(all, snapshot.Invalid{Query: query, Object: row.Source, Err: row.Err})
	}
	return all
}

// LeftOut returns nothing: a reader's answers have their own errors.
func (r *Reader) LeftOut(string, int) []snapshot.Invalid { return nil }
