package accumulator

import (
	"reflect"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/snapshot"
)

// layout is the fields of a snapshot, and how they fill the target.
type layout struct {
	*snapshot.Binding
	fields     []*field
	generation int
}

func (a *Accumulator) bind(t reflect.Type) (layout, error) {
	fields, generation := a.collector.FieldsNow()
	b := layout{fields: fields, generation: generation}
	if a.generation != b.generation {
		a.bindings, a.generation = nil, b.generation
	}
	if b.Binding = a.bindings[t]; b.Binding != nil {
		return b, nil
	}
	var err error
	if b.Binding, err = query.Compile(t, queriesOf(b.fields)); err != nil {
		return b, err
	}
	if a.bindings == nil {
		a.bindings = make(map[reflect.Type]*snapshot.Binding)
	}
	a.bindings[t] = b.Binding
	return b, nil
}

// fits returns an error if a struct type cannot show some queries.
func fits(t reflect.Type, queries []query.Query) error {
	_, err := query.Compile(t, queries)
	return err
}

// fill sets every field of the target.
func (b layout) fill(target reflect.Value, retired map[string]bool) {
	for i, f := range b.fields {
		if f.Present {
			b.Set(target, i, f.Shown.table, nil)
		} else {
			b.Set(target, i, nil, nil)
		}
	}
	for name := range retired {
		if v := target.FieldByName(name); v.IsValid() && v.CanSet() {
			v.SetZero()
		}
	}
}

// handed tells the witness what the target has got.
func (a *Accumulator) handed(b layout, result Result) {
	if !a.collector.Witnessed() {
		return
	}
	for _, diff := range result.Differences {
		if diff.New == nil {
			a.collector.Gone(diff.Query, diff.Old)
		}
	}
	d := collect.Delivery{Moment: collect.SameSnapshot}
	if result.Changed {
		d.Moment = collect.NewSnapshot
	}
	for _, f := range b.fields {
		if f.Present && !f.Shown.table.IsLookup() { // what a lookup returns is the caller's
			d.Filled = append(d.Filled, collect.Filled{Query: f.Name, Value: f.Shown.table.Value()})
		}
	}
	a.collector.Hand(d)
}

// worthAhead is the number of objects from which a copy ahead is worth a goroutine.
const worthAhead = 256

// prepare starts to copy what the next snapshot is likely to need, while the reader is busy with
// this one.
func (a *Accumulator) prepare(b layout) {
	var work []func()
	for _, f := range b.fields {
		if f.Shown.table.Len() < worthAhead {
			continue
		}
		if ahead := f.Shown.table.Ahead(); ahead != nil {
			work = append(work, ahead)
		}
	}
	if len(work) == 0 {
		return
	}
	a.leisure.Add(1)
	if !a.collector.Go(func() {
		defer a.leisure.Done()
		for _, copy := range work {
			copy()
		}
	}) {
		a.leisure.Done()
	}
}
