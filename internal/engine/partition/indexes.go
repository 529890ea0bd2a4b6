package partition

import (
	"reflect"
	"slices"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// field is a query with the index of its objects.
type field = collect.Field[*index]

// indexes are those of all queries. They make the snapshots of the partitions.
//
// They change only in the reader's turn, which reads them without mu.
type indexes struct {
	typ     reflect.Type // of the snapshots; set once
	lasting bool         // set once; see [Options.Lasting]
	// fields are in the order of their places. They are replaced together with the binding, see
	// Partitions.adapt, and never changed.
	fields  []*field
	binding *snapshot.Binding

	// mu is held while the indexes and the partitions' tables change, so that others can read
	// them.
	mu lockorder.Mutex[lockorder.Indexes]
}

// slicesOf returns the places of the fields that could have o in a slice.
func (x *indexes) slicesOf(o any) (places []int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, f := range x.fields {
		if f.Shown.shared.MayContain(o) {
			places = append(places, i)
		}
	}
	return places
}

// lookup reports whether the objects of the i-th field are looked up, and belong to no partition.
func (x *indexes) lookup(i int) bool { return x.fields[i].Shown.shared.IsLookup() }

// apply applies moves to the i-th index.
func (x *indexes) apply(i int, moves []moved) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fields[i].Shown.apply(moves)
}

// invalidIn returns the number of objects that snapshots leave out.
func (x *indexes) invalidIn(ix *index) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return ix.invalid
}

// contain reports whether o is a value of an index, or within a slice that all partitions share.
func (x *indexes) contain(o any) bool {
	object, ok := o.(object.Object)
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.fields, func(f *field) bool {
		return ok && f.Shown.shows(object) || f.Shown.shared.Contains(o)
	})
}

// sliced reports whether o is within a slice of a partition's own, in one of these fields.
func (x *indexes) sliced(part *partition, fields []int, o any) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(fields, func(i int) bool {
		table := part.shares[i].table
		return table != nil && table.Contains(o)
	})
}

// changed reports whether a turn of a partition would differ from the last one. An object that has
// left and is back as it was makes no difference.
func (x *indexes) changed(part *partition) bool {
	if part.fresh {
		return true
	}
	for i, f := range x.fields {
		for key, was := range part.shares[i].dirty {
			now := f.Shown.objects[key]
			if x.lookup(i) || was.shown == nil || was.shown != now.source() || !now.in(part.Key) {
				return true
			}
		}
	}
	return false
}

// fill makes the struct of a turn, and finds the differences from the last one.
func (x *indexes) fill(t *Turn) {
	target := reflect.New(x.binding.Type())
	part, gone := t.part, t.Gone && !x.lasting
	for i, f := range x.fields {
		sh, index, looked := &part.shares[i], f.Shown, x.lookup(i)
		table := index.shared
		t.Differences = tables.AppendDifferences(t.Differences, f.Name, sh.diffs(part, index, gone, looked))
		switch {
		case looked:
			sh.reading = &reads{}
		case gone:
			table = x.binding.NewTable(i)
			x.setTable(sh, nil)
		case sh.own == 0:
			x.setTable(sh, nil)
		default:
			table = x.refresh(part, i)
		}
		sh.dirty = nil
		switch {
		case !f.Present:
			x.binding.Set(target.Elem(), i, nil, nil)
		case looked:
			x.binding.Set(target.Elem(), i, table, sh.reading)
		default:
			x.binding.Set(target.Elem(), i, table, nil)
			if t.of.collector.Witnessed() {
				t.filled = append(t.filled, collect.Filled{Query: f.Name, Value: table.Value()})
			}
		}
		if looked {
			continue // these belong to no partition
		}
		for _, row := range table.Invalid() {
			t.Invalid = append(t.Invalid, tables.Invalid{Query: f.Name, Object: row.Source, Err: row.Err})
		}
	}
	part.fresh = gone
	t.fields, t.binding = x.fields, x.binding
	t.Snapshot = target.Interface()
}

// setTable replaces a partition's own table; nil: it needs none.
func (x *indexes) setTable(sh *share, t *tables.Table) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh.table = t
}

// refresh brings a partition's own table of the i-th field up to date.
func (x *indexes) refresh(part *partition, i int) *tables.Table {
	sh, index := &part.shares[i], x.fields[i].Shown
	table := sh.table
	changes := sh.changes(part, index)
	switch {
	case table == nil:
		table = copied(index.shared, x.binding.NewTable(i))
		x.setTable(sh, table)
	case sh.spans != index.spans && x.isMap(x.fields[i].Name):
		table = copied(table, x.binding.NewTable(i))
		x.setTable(sh, table)
	}
	sh.spans = index.spans
	x.mu.Lock()
	defer x.mu.Unlock()
	table.Apply(changes)
	return table
}

// everything returns a table's rows as changes of another table.
func everything(t *tables.Table) []tables.Change {
	out := tables.NewChanges(t.Held())
	for row := range t.All() {
		out.Put(object.KeyOf(row.Source), row)
	}
	return out.All
}

// index has all objects of a query by name, in place of one table. It belongs to the reader's
// turn; others read it with the lock of the indexes held.
type index struct {
	objects map[object.Key]*placed
	shared  *tables.Table // of objects that belong to all partitions
	common  bool          // an object of the query belongs to all partitions, or did once
	invalid int
	spans   bool // the keys of a map have the namespace
}

func newIndex() *index { return &index{objects: make(map[object.Key]*placed)} }

// shows reports whether turns show an object.
func (ix *index) shows(o object.Object) bool {
	p := ix.objects[object.KeyOf(o)]
	return p != nil && p.row.Value == tables.Value(o)
}

// apply applies moves to the index. Called with the lock of the indexes held.
func (ix *index) apply(moves []moved) {
	var shared tables.Changes
	for _, s := range moves {
		if s.old != nil && s.old.row.Err != nil {
			ix.invalid--
		}
		if s.now != nil && s.now.row.Err != nil {
			ix.invalid++
		}
		switch {
		case s.now.shared():
			shared.Put(s.key, s.now.row)
			ix.common = true
		case s.old.shared():
			shared.Delete(s.key)
		}
		if s.now == nil {
			delete(ix.objects, s.key)
		} else {
			ix.objects[s.key] = s.now
		}
	}
	ix.shared.Apply(shared.All)
}

func (x *indexes) isMap(name string) bool {
	sf, _ := x.typ.FieldByName(name)
	return sf.Type.Kind() == reflect.Map
}

// copied puts the rows of a table into a new one.
func copied(from, to *tables.Table) *tables.Table {
	to.Apply(everything(from))
	return to
}
