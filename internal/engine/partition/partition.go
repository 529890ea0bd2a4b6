package partition

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/engine/agenda"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/tables"
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

	// Guarded by the scheduler's lock.
	agenda.Entry       // the key and its state on the agenda
	objects      int   // how many objects have the key
	forced       bool  // the next turn is due even if nothing has changed
	seen         sight // of its last turn
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
	// dirty has the objects that have changed since the last turn. Of a look-up it has those alone
	// that the last turn has read.
	dirty map[object.Key]before

	// The reader's turn guards the fields above, but for dirty of a look-up. The scheduler's lock
	// guards that one, and the fields below.
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
	if !dirty && !p.fresh && s.old.in(p.Key) {
		b = before{in: true, shown: s.old.source()}
	}
	is := s.now.in(p.Key)
	if p.fresh {
		is = s.now.owned(p.Key)
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
		if now := ix.objects[key]; now.in(p.Key) {
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
		if now := ix.objects[key]; now.in(p.Key) && !gone {
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

// Partitions turns the watches of several queries into one snapshot per key, see
// [query.Query.Key].
// Each snapshot is complete, the latest, and coherent with own writes (G1 to G10). The package's
// documentation says more.
//
//	collector ──batches──▶ indexes ──moves──▶ scheduler ──▶ Turn
//	                          └──────snapshot──────────────▶
//
// All methods are safe for concurrent use. Several workers may call Next at a time. The fields are
// set once, but for those that say so.
type Partitions struct {
	collector *collect.Collector[*index]
	indexes   *indexes
	scheduler *scheduler
	changed   chan struct{} // replaces the collector's, with a debounce; else nil
	quietOwn  bool
	sharing   *sharing // nil: the replicas divide nothing
	readersTurn
	// released: the collector has signalled since waiting keys were last released.
	released atomic.Bool
	// received is the time of the signal for that, as UnixNano; 0: now.
	received atomic.Int64
}

// Turn is the time in which one worker has a key. No other worker gets the key until Done.
type Turn struct {
	Key string
	// Snapshot is a pointer to a fresh struct with the objects of the key.
	Snapshot any
	// Gone: no object has the key any more. The whole snapshot is empty, without the objects that
	// belong to every partition, unless [Options.Lasting] is set. Look-ups work as ever.
	Gone bool
	// Attempt is 1, or higher after turns of the key that failed in a row.
	Attempt int
	// Ready is when the key became ready for a worker. For a change that came while all workers
	// were busy it is the time of the first signal that none of them has received.
	Ready time.Time
	// Differences are the differences from the last turn of the key, whatever its outcome: by
	// query, then namespace and name. For a look-up they are those of the objects that the last
	// turn has read.
	Differences []tables.Difference
	// Invalid has the invalid objects of the key, by query, then namespace and name, without
	// those of look-ups.
	Invalid []tables.Invalid

	of      *Partitions
	part    *partition
	fields  []*field          // as they were when the turn began
	filled  []collect.Filled  // with a witness: what the snapshot has
	binding *snapshot.Binding // of these
	ended   atomic.Bool
}

// meanwhile is the change of an object since the turn of a partition began.
type meanwhile struct {
	old, now *placed
	signal   bool
}

// changedReads calls add with the differences from what the last turn has read, in no order.
func (sh *share) changedReads(ix *index, add func(key object.Key, old, now object.Object)) {
	for key, b := range sh.dirty {
		add(key, b.shown, sh.reads.of(key, ix.objects[key].source()))
	}
}

// signal notes that the changes of some objects since the turn began are worth a signal.
func (sh *share) signal(keys map[object.Key]bool) {
	for key, m := range sh.meanwhile {
		if keys[key] {
			m.signal = true
			sh.meanwhile[key] = m
		}
	}
}
