package accumulator

import (
	"reflect"
	"slices"
	"sync"

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
	own   int            // how many objects have the key
	dirty map[Key]before // changes since the last turn; of a look-up, of what that turn has read

	// Of a look-up, guarded by the partitions' lock:
	reads     *reads // by the last turn that ended
	reading   *reads // by the turn that runs
	meanwhile map[Key]meanwhile
}

// before is an object as the last turn showed it.
type before struct {
	in    bool   // the partition had it
	shown Object // nil if it was not there, or invalid
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
		sh.dirty = map[Key]before{s.key: b}
	default:
		sh.dirty[s.key] = b
	}
}

// changed reports whether a turn would differ from the last one. An object that has left and is
// back as it was makes no difference.
func (p *partition) changed(b layout) bool {
	if p.fresh {
		return true
	}
	for i, sh := range p.shares {
		for key, was := range sh.dirty {
			now := b.fields[i].index.objects[key]
			if b.IsLookup(i) || was.shown == nil || was.shown != now.source() || !now.in(p.key) {
				return true
			}
		}
	}
	return false
}

// touched reports whether one of these objects of the i-th field has changed since the last turn.
func (p *partition) touched(i int, keys []Key) bool {
	return slices.ContainsFunc(keys, func(key Key) bool {
		_, dirty := p.shares[i].dirty[key]
		return dirty
	})
}

// fill makes the struct of a turn, and returns the differences from the last one. With gone the
// partition is empty. The lock is held while tables change that other goroutines read.
func (p *partition) fill(b layout, gone bool, lock sync.Locker) (any, []Difference, []Invalid) {
	target := reflect.New(b.Type())
	var differences []Difference
	var invalid []Invalid
	for i, f := range b.fields {
		sh, table, looked := &p.shares[i], f.index.shared, b.IsLookup(i)
		differences = appendDifferences(differences, f.name, sh.diffs(p, f.index, gone, looked))
		switch {
		case looked:
			sh.reading = &reads{}
		case gone:
			table = b.NewTable(i)
			sh.drop(lock)
		case sh.own == 0:
			sh.drop(lock)
		default:
			table = sh.refresh(p, row{b, i}, lock)
		}
		sh.dirty = nil
		switch {
		case !f.present:
			b.SetAbsent(target.Elem(), i)
		case looked:
			b.SetRecorded(target.Elem(), i, table, sh.reading)
		default:
			b.Set(target.Elem(), i, table)
		}
		if looked {
			continue // these belong to no partition
		}
		for _, row := range table.Invalid() {
			invalid = append(invalid, Invalid{f.name, row.Source, row.Err})
		}
	}
	p.fresh = gone
	return target.Interface(), differences, invalid
}

// drop drops the partition's own table.
func (sh *share) drop(lock sync.Locker) {
	lock.Lock()
	defer lock.Unlock()
	sh.table = nil
}

// refresh brings the partition's own table up to date.
func (sh *share) refresh(p *partition, i row, lock sync.Locker) *snapshot.Table {
	index := i.field().index
	var all []snapshot.Change
	fresh := sh.table == nil
	if fresh {
		all = everything(index.shared)
	}
	changes := sh.changes(p, index)
	lock.Lock()
	defer lock.Unlock()
	if fresh {
		sh.table = i.of.NewTable(i.at)
		sh.table.Apply(all)
	}
	sh.table.Apply(changes)
	return sh.table
}

// changes returns the changes since the table of the last turn.
func (sh *share) changes(p *partition, ix *index) []snapshot.Change {
	out := newBatch(len(sh.dirty))
	for key := range sh.dirty {
		if now := ix.objects[key]; now.in(p.key) {
			out.put(key, now.row)
		} else {
			out.gone(key)
		}
	}
	return out.changes
}

// diffs returns the differences from the last turn, in key order.
func (sh *share) diffs(p *partition, ix *index, gone, looked bool) (all []snapshot.Diff) {
	add := func(key Key, old, now Object) {
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
func (sh *share) changed(p *partition, ix *index, gone bool, add func(key Key, old, now Object)) {
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
	out := newBatch(t.Held())
	for row := range t.All() {
		out.put(object.KeyOf(row.Source), row)
	}
	return out.changes
}
