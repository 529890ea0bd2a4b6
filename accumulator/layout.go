package accumulator

import (
	"reflect"

	"github.com/kates-go/kates/snapshot"
)

// layout is the fields of a snapshot, and how they fill the target.
type layout struct {
	*snapshot.Binding
	fields     []*field
	generation int
}

func (a *Accumulator) bind(t reflect.Type) (layout, error) {
	a.mu.Lock()
	b := layout{fields: a.fields, generation: a.generation}
	a.mu.Unlock()
	r := &a.reader
	if r.generation != b.generation {
		r.bindings = nil
		r.generation = b.generation
	}
	if b.Binding = r.bindings[t]; b.Binding != nil {
		return b, nil
	}
	var err error
	if b.Binding, err = compile(t, a.queriesOf(b.fields)); err != nil {
		return b, err
	}
	if r.bindings == nil {
		r.bindings = make(map[reflect.Type]*snapshot.Binding)
	}
	r.bindings[t] = b.Binding
	return b, nil
}

func (a *Accumulator) queriesOf(fields []*field) (all []Query) {
	for _, f := range fields {
		all = append(all, a.queryOf(f))
	}
	return all
}

func compile(t reflect.Type, queries []Query) (*snapshot.Binding, error) {
	all := make([]snapshot.Query, len(queries))
	for i, q := range queries {
		all[i] = snapshot.Query{Name: q.Name, SpansNamespaces: q.Namespace == ""}
	}
	return snapshot.Compile(t, all)
}

// fill sets every field of the target.
func (b layout) fill(target reflect.Value, retired map[string]bool) {
	for i, f := range b.fields {
		if f.present {
			b.Set(target, i, f.table)
		} else {
			b.SetAbsent(target, i)
		}
	}
	for name := range retired {
		if v := target.FieldByName(name); v.IsValid() && v.CanSet() {
			v.SetZero()
		}
	}
}

// worthAhead is the number of objects from which a copy ahead is worth a goroutine.
const worthAhead = 256

// prepare starts to copy what the next snapshot is likely to need, while the reader is busy with
// this one.
func (a *Accumulator) prepare(b layout) {
	var work []func()
	for _, f := range b.fields {
		if f.table.Len() < worthAhead {
			continue
		}
		if ahead := f.table.Ahead(); ahead != nil {
			work = append(work, ahead)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(work) == 0 || a.err != nil {
		return // after the end there is no next one
	}
	a.leisure.Go(func() {
		for _, copy := range work {
			copy()
		}
	})
}
