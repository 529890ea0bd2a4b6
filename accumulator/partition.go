package accumulator

import (
	"reflect"
	"slices"
	"time"

	"github.com/kates-go/kates/snapshot"
)

// partition is what is known of one key. It is there as long as an object has the key, or the program is owed a turn without.
type partition struct {
	key string

	// Of the reader's turn.
	shares []share // of each field
	fresh  bool    // nothing is shown: dirty has all objects that have the key, and those of all partitions come besides

	// Guarded by the partitions' lock.
	objects int  // that have the key
	due     bool // it is to be handed out
	forced  bool // though nothing may have changed
	queued  bool // the signal has come: it is in the queue, or will be when it is neither held nor rests
	held    bool // by a worker
	resting bool // the queue brings it after its backoff
	known   bool // it was handed out, and not without objects since

	first, latest time.Time // changes since it was queued last, where there is a debounce
}

// share is a partition's of one field.
//
//	own objects, or none ──▶ table, or the field's shared one
type share struct {
	table *snapshot.Table // nil while no object of the field has the key: then it shows what all partitions have
	own   int             // objects that have the key
	dirty map[Key]before  // what changed since the last turn
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

// changed reports whether a turn would not be like the last one.
func (p *partition) changed() bool {
	return p.fresh || slices.ContainsFunc(p.shares, func(sh share) bool { return len(sh.dirty) > 0 })
}

// touched reports whether one of some objects of the i-th field has changed since the last turn.
func (p *partition) touched(i int, keys []Key) bool {
	return slices.ContainsFunc(keys, func(key Key) bool {
		_, dirty := p.shares[i].dirty[key]
		return dirty
	})
}

// fill makes the struct of a turn, and says what is not as in the last one. The partition is empty if it is gone.
func (p *partition) fill(b layout, gone bool) (any, []Difference, []Invalid) {
	target := reflect.New(b.Type())
	var differences []Difference
	var invalid []Invalid
	for i, f := range b.fields {
		sh, table := &p.shares[i], f.index.shared
		differences = appendDifferences(differences, f.name, sh.diffs(p, f.index, gone))
		switch {
		case gone:
			table, sh.table = b.NewTable(i), nil
		case sh.own == 0:
			sh.table = nil
		default:
			if sh.table == nil {
				sh.table = b.NewTable(i)
				sh.table.Apply(everything(f.index.shared))
			}
			sh.table.Apply(sh.changes(p, f.index))
			table = sh.table
		}
		sh.dirty = nil
		for _, row := range table.Invalid() {
			invalid = append(invalid, Invalid{f.name, row.Source, row.Err})
		}
		if f.present {
			b.Set(target.Elem(), i, table)
		} else {
			b.SetAbsent(target.Elem(), i)
		}
	}
	p.fresh = gone
	return target.Interface(), differences, invalid
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
func (sh *share) diffs(p *partition, ix *index, gone bool) (all []snapshot.Diff) {
	add := func(key Key, old, now Object) {
		if old != now {
			all = append(all, snapshot.Diff{Key: key, Old: old, New: now})
		}
	}
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
			key := snapshot.KeyOf(row.Source)
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
	slices.SortFunc(all, func(x, y snapshot.Diff) int { return snapshot.CompareKeys(x.Key, y.Key) })
	return all
}

// everything is a table's rows, for another one.
func everything(t *snapshot.Table) []snapshot.Change {
	out := newBatch(t.Held())
	for row := range t.All() {
		out.put(snapshot.KeyOf(row.Source), row)
	}
	return out.changes
}
