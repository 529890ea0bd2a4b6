package accumulator

import (
	"errors"
	"maps"
	"slices"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/guard"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// KeyFunc returns the keys of the partitions that an object belongs to. An object without keys
// belongs to no partition, and one with [EveryPartition] among them to all. The same object must
// give the same keys.
//
// The goroutine that calls [Partitions.Next] calls it once per version of an object, as the
// stream holds it, without locks, and never two at a time. It must not write to the object. The
// caller owns the result. If it panics, or returns an empty key, that object is left out as
// [Invalid] until its next version.
type KeyFunc func(Object) []string

// EveryPartition is what a [KeyFunc] returns for an object that belongs to every partition. No
// key equals it.
const EveryPartition = "\x00every"

var errEmptyKey = errors.New("the key function returned an empty key: for no partition it returns none, for all of them EveryPartition")

// placed is an object, its row, and the partitions that it belongs to. It is never changed.
type placed struct {
	row   snapshot.Row // with a value if the object belongs to a partition
	keys  []string     // sorted
	every bool         // it belongs to all partitions, and keys is empty
}

// owned reports whether the object has a key.
func (o *placed) owned(key string) bool {
	if o == nil {
		return false
	}
	_, has := slices.BinarySearch(o.keys, key)
	return has
}

// in reports whether the object belongs to a partition.
func (o *placed) in(key string) bool { return o != nil && o.every || o.owned(key) }

// shared reports whether the object belongs to all partitions.
func (o *placed) shared() bool { return o != nil && o.every }

// source returns the object if its partitions show it.
func (o *placed) source() Object {
	if o == nil || !o.row.Shown() {
		return nil
	}
	return o.row.Source
}

// index has all objects of a query by name. It replaces the one table.
type index struct {
	objects map[Key]*placed
	shared  *snapshot.Table // of objects that belong to all partitions
	invalid int
}

// holds reports whether turns show an object.
func (ix *index) holds(o Object) bool {
	p := ix.objects[object.KeyOf(o)]
	return p != nil && p.row.Value == snapshot.Value(o)
}

// moved is the change of one object.
type moved struct {
	key      Key
	old, now *placed // nil where there is none
	loud     bool    // worth a signal
}

// unmoved returns the keys worth a signal that do not move now: an earlier batch had their
// change.
func unmoved(loud map[Key]bool, moves []moved) (keys []Key) {
	if len(loud) == 0 {
		return nil
	}
	left := maps.Clone(loud)
	for _, m := range moves {
		delete(left, m.key)
	}
	return slices.Collect(maps.Keys(left))
}

// moves finds the partitions of each changed object, and converts it. The user's functions run
// here, without locks. The result is in key order.
func (a *Accumulator) moves(i row, t taken) (all []moved) {
	ix, key := i.field().index, a.queryOf(i.field()).Key
	differ := t.anew || t.reshaped
	var there map[Key]bool
	if t.whole {
		there = make(map[Key]bool, len(t.changes))
	}
	for _, c := range t.changes {
		old := ix.objects[c.Key]
		s := moved{key: c.Key, old: old, loud: t.whole || t.loud[c.Key]}
		if t.whole {
			there[c.Key] = true
		}
		switch {
		case c.Object == nil && old == nil:
			continue
		case c.Object == nil:
		case old != nil && (old.row.Source == c.Object || !differ && a.same(old.row.Source, c.Object)):
			continue
		default:
			s.now = a.placedOf(i, key, c.Object, old)
		}
		all = append(all, s)
	}
	if t.whole {
		for key, old := range ix.objects {
			if !there[key] {
				all = append(all, moved{key: key, old: old, loud: true})
			}
		}
	}
	slices.SortFunc(all, func(x, y moved) int { return object.Compare(x.key, y.key) })
	return all
}

// placedOf finds the partitions of an object. If they cannot be known, the object is invalid and
// keeps those that it had.
func (a *Accumulator) placedOf(i row, f KeyFunc, o Object, old *placed) *placed {
	var keys []string
	every, err := f == nil, stream.Fault(o)
	if f != nil && err == nil {
		keys, every, err = keysOf(f, o)
	}
	switch {
	case err != nil:
		p := &placed{row: snapshot.Row{Source: o, Err: err}, every: f == nil}
		if f != nil && old != nil && object.UIDOf(old.row.Source) == object.UIDOf(o) {
			p.keys, p.every = old.keys, old.every
		}
		return p
	case len(keys) == 0 && !every:
		return &placed{row: snapshot.Row{Source: o}}
	}
	return &placed{row: a.convert(i, o), keys: keys, every: every}
}

// keysOf asks the user's function.
func keysOf(f KeyFunc, o Object) (keys []string, every bool, err error) {
	err = guard.Named("the key function panicked", func() error {
		keys = slices.Clone(f(o))
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	if slices.Contains(keys, EveryPartition) {
		return nil, true, nil
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) > 0 && keys[0] == "" {
		return nil, false, errEmptyKey
	}
	return keys, false, nil
}

// apply applies moves to the index. Called with the reader's lock held.
func (ix *index) apply(moves []moved) {
	var shared batch
	for _, s := range moves {
		if s.old != nil && s.old.row.Err != nil {
			ix.invalid--
		}
		if s.now != nil && s.now.row.Err != nil {
			ix.invalid++
		}
		switch {
		case s.now.shared():
			shared.put(s.key, s.now.row)
		case s.old.shared():
			shared.gone(s.key)
		}
		if s.now == nil {
			delete(ix.objects, s.key)
		} else {
			ix.objects[s.key] = s.now
		}
	}
	ix.shared.Apply(shared.changes)
}
