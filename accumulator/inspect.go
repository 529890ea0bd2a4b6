package accumulator

import (
	"slices"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// user is an accumulator as the streams know it: [collect.Watch], with what its caller has no use
// for.
type user struct{ *Accumulator }

// Inspect returns what the accumulator has and has done.
func (a user) Inspect() collect.Inspection { return a.collector.Inspect() }

// Names returns the names of the objects of a query that the last snapshot has, or leaves out, in
// order. It returns nil if there is no such query.
func (a user) Names(query string) []object.Key {
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
func (a user) Examine(query string, key object.Key) (collect.Examined, bool) {
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

// LeftOut returns some of the objects of a query that the last snapshot leaves out as invalid, in
// order.
func (a user) LeftOut(query string, most int) (all []tables.Invalid) {
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
		all = append(all, tables.Invalid{Query: query, Object: row.Source, Err: row.Err})
	}
	return all
}

// Shares reports whether o is a value that the last snapshot shows, or points into one of its
// slices.
func (a user) Shares(o any) bool {
	a.tables.Lock()
	defer a.tables.Unlock()
	for _, f := range a.collector.Fields() {
		if t := f.Shown.table; t != nil && t.Shares(o) {
			return true
		}
	}
	return false
}
