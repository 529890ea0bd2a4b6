package partition

import (
	"reflect"
	"slices"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// partition is the state of one key. It exists while an object has the key, or while a last turn
// without objects is owed.
type partition struct {
	// Guarded by the reader's turn.
	shares []share // one per field
	// fresh: nothing is shown yet. dirty has all objects with the key, but not those of all
	// partitions.
	fresh bool

	// Guarded by the partitions' lock.
	entry        // the key and its state on the agenda
	objects int  // how many objects have the key
	forced  bool // the next turn is due even if nothing has changed
	owed    bool // it was handed out, so a last turn without objects is owed
	gone    bool // its last turn had no objects
}

// share is a partition's share of one field.
//
//	own objects, or none ──▶ table, or the field's shared one
type share struct {
	// nil while no object of the field has the key: the shared table stands in
	table *snapshot.Table
	own   int                   // how many objects have the key
	dirty map[stream.Key]before // changes since the last turn; of a look-up, of what that turn has read

	// Of a look-up, guarded by the partitions' lock:
	reads     *reads // by the last turn that ended
	reading   *reads // by the turn that runs
	meanwhile map[stream.Key]meanwhile
}

// before is an object as the last turn showed it.
type before struct {
	in    bool          // the partition had it
	shown stream.Object // nil if it was not there, or invalid
}

// touch notes a move in the i-th field.
func (p *partition) touch(i int, s moved) {
	sh := &p.shares[i]
	b, dirty := sh.dirty[s.key]
	if !dirty && !p.fresh && s.old.in(p.key) {
		b = before{true, s.old.source()}
	}
	is := s.now.in(p.key)
	if p.fresh {
		is = s.now.owned(p.key)
	}
	switch {
	case !b.in && !is: // no change since the last turn
		delete(sh.dirty, s.key)
	case sh.dirty == nil:
		sh.dirty = map[stream.Key]before{s.key: b}
	default:
		sh.dirty[s.key] = b
	}
}

// changed reports whether a turn of a partition would differ from the last one. An object that has left and is
// back as it was makes no difference.
func (p *Partitions) changed(part *partition) bool {
	if part.fresh {
		return true
	}
	for i, f := range p.fields() {
		for key, was := range part.shares[i].dirty {
			now := f.Shown.objects[key]
			if p.lookups[i] != nil || was.shown == nil || was.shown != now.source() || !now.in(part.key) {
				return true
			}
		}
	}
	return false
}

// touched reports whether one of these objects of the i-th field has changed since the last turn.
func (p *partition) touched(i int, keys []stream.Key) bool {
	return slices.ContainsFunc(keys, func(key stream.Key) bool {
		_, dirty := p.shares[i].dirty[key]
		return dirty
	})
}

// fill makes the struct of a turn, and finds the differences from the last one.
func (p *Partitions) fill(t *Turn) {
	target := reflect.New(p.binding.Type())
	part, gone := t.part, t.Gone && !p.lasting
	for i, f := range p.fields() {
		sh, index, looked := &part.shares[i], f.Shown, p.lookups[i] != nil
		table := index.shared
		t.Differences = snapshot.AppendDifferences(t.Differences, f.Name, sh.diffs(part, index, gone, looked))
		switch {
		case looked:
			sh.reading = &reads{}
		case gone:
			table = p.binding.NewTable(i)
			p.setTable(sh, nil)
		case sh.own == 0:
			p.setTable(sh, nil)
		default:
			table = p.refresh(part, i)
		}
		sh.dirty = nil
		switch {
		case !index.present:
			p.binding.SetAbsent(target.Elem(), i)
		case looked:
			p.binding.SetRecorded(target.Elem(), i, table, sh.reading)
		default:
			p.binding.Set(target.Elem(), i, table)
		}
		if looked {
			continue // these belong to no partition
		}
		for _, row := range table.Invalid() {
			t.Invalid = append(t.Invalid, snapshot.Invalid{Query: f.Name, Object: row.Source, Err: row.Err})
		}
	}
	part.fresh = gone
	t.Snapshot = target.Interface()
}

// setTable replaces a partition's own table; nil: it needs none.
func (p *Partitions) setTable(sh *share, t *snapshot.Table) {
	p.tables.Lock()
	defer p.tables.Unlock()
	sh.table = t
}

// refresh brings a partition's own table of the i-th field up to date.
func (p *Partitions) refresh(part *partition, i int) *snapshot.Table {
	sh, index := &part.shares[i], p.fields()[i].Shown
	table := sh.table
	changes := sh.changes(part, index)
	if table == nil {
		table = p.binding.NewTable(i)
		table.Apply(everything(index.shared))
		p.setTable(sh, table)
	}
	p.tables.Lock()
	defer p.tables.Unlock()
	table.Apply(changes)
	return table
}

// changes returns the changes since the table of the last turn.
func (sh *share) changes(p *partition, ix *index) []snapshot.Change {
	out := snapshot.NewChanges(len(sh.dirty))
	for key := range sh.dirty {
		if now := ix.objects[key]; now.in(p.key) {
			out.Put(key, now.row)
		} else {
			out.Delete(key)
		}
	}
	return out.All
}

// diffs returns the differences from the last turn, in key order.
func (sh *share) diffs(p *partition, ix *index, gone, looked bool) (all []snapshot.Diff) {
	add := func(key stream.Key, old, now stream.Object) {
		if old != now {
			all = append(all, snapshot.Diff{Key: key, Old: old, New: now})
		}
	}
	if looked {
		sh.changedReads(ix, add)
	} else {
		sh.changed(p, ix, gone, add)
	}
	slices.SortFunc(all, func(x, y snapshot.Diff) int { return object.Compare(x.Key, y.Key) })
	return all
}

// changed calls add with the differences of the partition's objects, in no order.
func (sh *share) changed(p *partition, ix *index, gone bool, add func(key stream.Key, old, now stream.Object)) {
	for key, b := range sh.dirty {
		if now := ix.objects[key]; now.in(p.key) && !gone {
			add(key, b.shown, now.source())
		} else {
			add(key, b.shown, nil)
		}
	}
	if p.fresh && !gone || !p.fresh && gone { // all other objects are added, or deleted
		rest := ix.shared
		if sh.table != nil {
			rest = sh.table
		}
		for row := range rest.All() {
			key := object.KeyOf(row.Source)
			if _, dirty := sh.dirty[key]; dirty || !row.Shown() {
				continue
			}
			if gone {
				add(key, row.Source, nil)
			} else {
				add(key, nil, row.Source)
			}
		}
	}
}

// everything returns a table's rows as changes of another table.
func everything(t *snapshot.Table) []snapshot.Change {
	out := snapshot.NewChanges(t.Held())
	for row := range t.All() {
		out.Put(object.KeyOf(row.Source), row)
	}
	return out.All
}
