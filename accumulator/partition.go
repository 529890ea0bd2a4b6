package accumulator

import (
	"reflect"
	"slices"
	"sync"

	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// partition is what is known of one key. It exists while an object has the key, or the program is
// owed a last turn without objects.
type partition struct {
	// Of the reader's turn.
	shares []share // of each field
	fresh  bool    // nothing is shown: dirty has all objects that have the key, and those of all partitions come besides

	// Guarded by the partitions' lock.
	entry        // the key, and whether and when it runs
	objects int  // that have the key
	forced  bool // its next turn is due though nothing may have changed
	owed    bool // it was handed out, so it is owed a last turn when it has no objects
	gone    bool // it had no objects in its last turn
}

// share is a partition's of one field.
//
//	own objects, or none ──▶ table, or the field's shared one
type share struct {
	table *snapshot.Table // nil while no object of the field has the key: then it shows what all partitions have
	own   int             // objects that have the key
	dirty map[Key]before  // what changed since the last turn; of a field that is looked up in, of what that has read

	// Where things are looked up, guarded by the partitions' lock:
	reads     *reads // of the last turn that ended
	reading   *reads // of the one that is under way
	meanwhile map[Key]meanwhile
}

// before is what the last turn had of an object.
type before struct {
	in    bool   // it did
	shown Object // nil if it did not, or as invalid
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
	case !b.in && !is: // it came and went
		delete(sh.dirty, s.key)
	case sh.dirty == nil:
		sh.dirty = map[Key]before{s.key: b}
	default:
		sh.dirty[s.key] = b
	}
}

// changed reports whether a turn would not be like the last one. What has left, and is back as it was, has not changed.
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

// touched reports whether one of some objects of the i-th field has changed since the last turn.
func (p *partition) touched(i int, keys []Key) bool {
	return slices.ContainsFunc(keys, func(key Key) bool {
		_, dirty := p.shares[i].dirty[key]
		return dirty
	})
}

// fill makes the struct of a turn, and says what is not as in the last one. The partition is empty if it is gone. The lock
// is held while what others look at changes.
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
			continue // they are no partition's
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

// changes are what is to be made of the table of the last turn.
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

// diffs are what a turn shows otherwise than the last one, in key order.
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

// changed are the differences of objects that belong to the partition, in no order.
func (sh *share) changed(p *partition, ix *index, gone bool, add func(key Key, old, now Object)) {
	for key, b := range sh.dirty {
		if now := ix.objects[key]; now.in(p.key) && !gone {
			add(key, b.shown, now.source())
		} else {
			add(key, b.shown, nil)
		}
	}
	if p.fresh && !gone || !p.fresh && gone { // all the rest comes, or goes
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

// everything is a table's rows, for another one.
func everything(t *snapshot.Table) []snapshot.Change {
	out := newBatch(t.Held())
	for row := range t.All() {
		out.put(object.KeyOf(row.Source), row)
	}
	return out.changes
}
