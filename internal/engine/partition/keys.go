package partition

import (
	"maps"
	"slices"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// placed is an object, its row, and the partitions that it belongs to. It is never changed.
type placed struct {
	row   tables.Row // with a value if the object belongs to a partition
	keys  []string   // sorted
	every bool       // it belongs to all partitions, and keys is empty
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
func (o *placed) source() object.Object {
	if o == nil || !o.row.Shown() {
		return nil
	}
	return o.row.Source
}

// seen returns the object if a look-up tells it from an absent one: its partitions show it, or it
// is invalid.
func (o *placed) seen() object.Object {
	if o == nil || o.row.Excluded {
		return nil
	}
	return o.row.Source
}

// moved is the change of one object.
type moved struct {
	key      object.Key
	old, now *placed // nil where there is none
	signal   bool    // worth a signal
}

// unmoved returns the keys worth a signal that do not move now: an earlier batch had their
// change.
func unmoved(signals map[object.Key]bool, moves []moved) (keys []object.Key) {
	if len(signals) == 0 {
		return nil
	}
	left := maps.Clone(signals)
	for _, m := range moves {
		delete(left, m.key)
	}
	return slices.Collect(maps.Keys(left))
}

// signalled adds the keys of moves that are worth a signal to others.
func signalled(signals map[object.Key]bool, moves []moved) map[object.Key]bool {
	all := make(map[object.Key]bool, len(signals)+len(moves))
	maps.Copy(all, signals)
	for _, m := range moves {
		if m.signal {
			all[m.key] = true
		}
	}
	return all
}

// moves finds the partitions of each changed object, and converts it. The user's functions run
// here, without locks. The result is in key order.
func (p *Partitions) moves(i int, b query.Batch) (all []moved) {
	f := p.indexes.fields[i]
	ix, key := f.Shown, f.Query.Query()
	differ := b.Breaks.Has(query.NewHistory | query.Reshaped)
	var there map[object.Key]bool
	if b.Renews() {
		there = make(map[object.Key]bool, len(b.Changes))
	}
	for _, c := range b.Changes {
		old := ix.objects[c.Key]
		s := moved{key: c.Key, old: old, signal: b.Whole() || b.Signals[c.Key]}
		if b.Renews() {
			there[c.Key] = true
		}
		switch {
		case c.Object == nil && old == nil:
			continue
		case c.Object == nil:
		case old != nil && (old.row.Source == c.Object || !differ && p.collector.Same(old.row.Source, c.Object)):
			if !b.Breaks.Has(query.Anew) {
				continue
			}
			if s.now = p.rekeyed(i, key, c.Object, old); s.now == nil {
				continue
			}
		default:
			s.now = p.placedOf(i, key, c.Object, old)
		}
		all = append(all, s)
	}
	if b.Renews() {
		for key, old := range ix.objects {
			if !there[key] && b.Gone(key) {
				all = append(all, moved{key: key, old: old, signal: true})
			}
		}
	}
	slices.SortFunc(all, func(x, y moved) int { return object.Compare(x.key, y.key) })
	return all
}

// rekeyed finds the partitions of an object anew, whose query may have another key function: that
// may read what the former query did not hold. It returns nil if they are the same.
func (p *Partitions) rekeyed(i int, q query.Query, o object.Object, old *placed) *placed {
	now := p.placedOf(i, q, o, old)
	fault := (now.row.Err != nil) != (old.row.Err != nil)
	if !fault && now.every == old.every && slices.Equal(now.keys, old.keys) {
		return nil
	}
	if old.row.Value != nil && now.row.Value != nil {
		now.row = old.row // the value stays the same
	}
	return now
}

var theKeyFunction = "the Key function"

// placedOf finds the partitions of an object. If they cannot be known, the object is invalid and
// keeps those that it had.
func (p *Partitions) placedOf(i int, q query.Query, o object.Object, old *placed) *placed {
	var keys []string
	f := q.Key
	every, err := f == nil, object.Fault(o)
	if f != nil && err == nil {
		p.collector.Doing(&theKeyFunction)
		keys, every, err = keysOf(f, o)
		p.collector.Doing(nil)
	}
	switch {
	case err != nil:
		left := &placed{row: tables.Row{Source: o, Err: err}, every: f == nil}
		has := old != nil && object.UIDOf(old.row.Source) == object.UIDOf(o)
		known := knownOf(o, q.KeyOfMetadata)
		if has && q.Transform.Changes() {
			known = nil // the Key is a function of what the Transform makes
		}
		if f != nil && known != nil {
			if keys, every, err := keysOf(f, known); err == nil {
				left.keys, left.every = keys, every
				return left
			}
		}
		if f != nil && has {
			left.keys, left.every = old.keys, old.every
		}
		return left
	case len(keys) == 0 && !every:
		return &placed{row: tables.Row{Source: o}}
	}
	return &placed{row: p.collector.Convert(p.indexes.binding, i, p.indexes.fields[i].Name, o), keys: keys, every: every}
}

// knownOf is what is known of an object that is left out, nil for nothing.
func knownOf(o object.Object, metadata bool) object.Object {
	if m := object.FaultMetadata(o); m != nil && metadata {
		return m
	}
	if u := object.FaultOriginal(o).Object(); u != nil {
		return u
	}
	return nil
}

// keysOf asks the user's function.
func keysOf(f query.KeyFunc, o object.Object) (keys []string, every bool, err error) {
	err = guard.Named(query.KeyPanicked, func() error {
		keys = slices.Clone(f(o))
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	if slices.Contains(keys, query.EveryPartition) {
		return nil, true, nil
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) > 0 && keys[0] == "" {
		keys = keys[1:] // no partition
	}
	return keys, false, nil
}
