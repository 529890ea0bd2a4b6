package partition

import (
	"slices"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// partition is the state of one key. It exists while an object has the key, or while a last turn
// without objects is owed.
type partition struct {
	// Guarded by the reader's turn.
	shares []share // one per field
	// fresh: nothing is shown yet. dirty has all objects with the key, but not those of all
	// partitions.
	fresh bool

	// Guarded by the scheduler's lock.
	entry         // the key and its state on the agenda
	objects int   // how many objects have the key
	forced  bool  // the next turn is due even if nothing has changed
	seen    sight // of its last turn
	// Of partitions by UID: the place among the hashes, and whether it is that of an object by
	// [shardrange.UID].
	hash   uint64
	rooted bool
}

// sight is what workers have seen of a partition.
//
//	         turn                   turn
//	unseen ────────▶ withObjects ◀────────▶ withoutObjects
//	   ▲                                          │
//	   └──────────── that turn succeeds ──────────┘
//
// When its last object leaves, an unseen partition is forgotten. Any other one becomes due.
type sight uint8

const (
	unseen         sight = iota
	withObjects          // it is not forgotten before a turn without objects succeeds
	withoutObjects       // that turn runs, or has to be repeated
)

// share is a partition's share of one field.
//
//	own objects, or none ──▶ table, or the field's shared one
type share struct {
	// nil while no object of the field has the key: the shared table stands in
	table *tables.Table
	own   int  // how many objects have the key
	spans bool // as the index had it when the table was made
	// dirty: changes since the last turn; of a look-up, of what that turn has read.
	dirty map[object.Key]before

	// Of a look-up, dirty too is guarded by the scheduler's lock:
	reads     *reads // by the last turn that ended
	reading   *reads // by the turn that runs; set before its worker has it
	meanwhile map[object.Key]meanwhile
}

// before is an object as the last turn showed it.
type before struct {
	in    bool          // the partition had it
	shown object.Object // nil if it was not there, or invalid
	seen  object.Object // of a look-up: nil only if it was not there
}

// touch notes a move in the i-th field.
func (p *partition) touch(i int, s moved) {
	sh := &p.shares[i]
	b, dirty := sh.dirty[s.key]
	if !dirty && !p.fresh && s.old.in(p.key) {
		b = before{in: true, shown: s.old.source()}
	}
	is := s.now.in(p.key)
	if p.fresh {
		is = s.now.owned(p.key)
	}
	switch {
	case !b.in && !is: // no change since the last turn
		delete(sh.dirty, s.key)
	case sh.dirty == nil:
		sh.dirty = map[object.Key]before{s.key: b}
	default:
		sh.dirty[s.key] = b
	}
}

// changes returns the changes since the table of the last turn.
func (sh *share) changes(p *partition, ix *index) []tables.Change {
	out := tables.NewChanges(len(sh.dirty))
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
func (sh *share) diffs(p *partition, ix *index, gone, looked bool) (all []tables.Diff) {
	add := func(key object.Key, old, now object.Object) {
		if old != now {
			all = append(all, tables.Diff{Key: key, Old: old, New: now})
		}
	}
	if looked {
		sh.changedReads(ix, add)
	} else {
		sh.changed(p, ix, gone, add)
	}
	slices.SortFunc(all, func(x, y tables.Diff) int { return object.Compare(x.Key, y.Key) })
	return all
}

// changed calls add with the differences of the partition's objects, in no order.
func (sh *share) changed(p *partition, ix *index, gone bool, add func(key object.Key, old, now object.Object)) {
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
