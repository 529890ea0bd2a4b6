package derive

import (
	"iter"
	"slices"
)

// Changes has the entries of a collection that are not what they were at the last [Changes.Done]:
// what a program still has to write. [ChangesOf] makes one. It outlives [Graph.Reset].
type Changes[K comparable, V any] struct {
	of  *collection
	was map[K]cell // at the last Done, of the keys that have changed; nil: it was not there
}

// Change is the difference between an entry at the last [Changes.Done] and now.
type Change[K comparable, V any] struct {
	Key K
	// Old is the value at that time. Nil: there was none, or the entry was invalid.
	Old *V
	// New is the value now. Nil: the entry is gone, or is invalid.
	New *V
	// Err is why the entry is invalid now. Nil: it is valid, or gone.
	Err error
}

// ChangesOf follows a collection. It is declared before the first Update, like a node.
func ChangesOf[K comparable, V any](c Collection[K, V]) *Changes[K, V] {
	if c.c == nil {
		misuse("ChangesOf of a collection that no graph has made")
	}
	if c.c.c.begun {
		c.c.c.wrong("ChangesOf(%q) is called after the first Update", c.c.name)
	}
	f := &Changes[K, V]{of: c.c, was: make(map[K]cell)}
	c.c.followers = append(c.c.followers, f)
	return f
}

// keepOld keeps what a key was at the last Done.
func (f *Changes[K, V]) keepOld(old, next cell) {
	known := old
	if old == nil {
		known = next
	}
	k := keyOf[K, V](known)
	switch was, has := f.was[k]; {
	case !has:
		f.was[k] = old
	case was == nil && next == nil:
		delete(f.was, k) // it has come and gone, and costs no memory until the next Done
	}
}

// All returns the net changes since Done, in the order of their keys: all entries before the first
// Done. An entry that is again what it was is not among them. The changes stay until Done is
// called, so a write that failed comes again. r is the Reader of the last Update.
func (f *Changes[K, V]) All(r *Reader) iter.Seq[Change[K, V]] {
	r.permit(&f.of.header)
	if r.record {
		misuse("the changes of %q are read in a function", f.of.name)
	}
	keys := make([]K, 0, len(f.was))
	for k := range f.was {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, tableOf[K](f.of).compare)
	return func(yield func(Change[K, V]) bool) {
		r.permit(&f.of.header)
		for _, k := range keys {
			if ch, is := f.change(k); is && !yield(ch) {
				return
			}
		}
	}
}

// Done says that the changes have been taken over: the next All begins here. Call Done before the
// next Update: what changes in an Update before Done counts as taken over, too.
func (f *Changes[K, V]) Done() { clear(f.was) }

// change compares a key with what it was.
func (f *Changes[K, V]) change(k K) (ch Change[K, V], is bool) {
	old := f.was[k]
	var now cell
	if e := find(f.of, k); e != nil {
		now = e.cell
	}
	switch {
	case old == now:
		return ch, false
	case old == nil || now == nil:
	case faultOf(old) != nil || faultOf(now) != nil:
		if sameFault(faultOf(old), faultOf(now)) {
			return ch, false
		}
	case f.of.equal(old.anyValue(), now.anyValue()):
		return ch, false
	}
	ch.Key = k
	if x, is := old.(*cellOf[K, V]); is {
		ch.Old = &x.val
	}
	if x, is := now.(*cellOf[K, V]); is {
		ch.New = &x.val
	}
	ch.Err = f.of.errorOf(now)
	return ch, true
}
