package derive

import (
	"errors"
	"iter"
	"slices"
)

// Collection is a set of entries, each with a key and a value, or with the reason why it is
// invalid. [Objects], [Slice], [Map], [FlatMap], [Union], [Index.Groups] and [Index.Keys] make
// one.
//
// Values are shared and are not written to. They may be kept after the Reader has ended.
type Collection[K comparable, V any] struct{ c *collection[K, V] }

// Get returns the value of a key. The error is [ErrNone] if there is none, and an [*EntryError] if
// the entry is invalid. A function that has called Get runs again when the answer for this key
// changes.
func (c Collection[K, V]) Get(r *Reader, k K) (V, error) {
	return c.permitted(r).lookUp(r, k)
}

// All returns the valid entries in the order of their keys. A function that has called All, Len or
// Invalid runs again when anything in the collection changes: an index or a selection costs less.
func (c Collection[K, V]) All(r *Reader) iter.Seq2[K, V] {
	in := c.permitted(r)
	r.recordQuestion(&in.whole)
	return func(yield func(K, V) bool) {
		c.permitted(r)
		for x := range in.cells() {
			if x.fault == nil && !yield(x.key, x.val) {
				return
			}
		}
	}
}

// Invalid returns the invalid entries in the order of their keys, each with its reason.
func (c Collection[K, V]) Invalid(r *Reader) iter.Seq2[K, error] {
	in := c.permitted(r)
	r.recordQuestion(&in.whole)
	return func(yield func(K, error) bool) {
		c.permitted(r)
		for x := range in.cells() {
			if x.fault != nil && !yield(x.key, x.fault.err) {
				return
			}
		}
	}
}

// Len returns the number of valid entries.
func (c Collection[K, V]) Len(r *Reader) int {
	in := c.permitted(r)
	r.recordQuestion(&in.whole)
	return in.valid
}

func (c Collection[K, V]) permitted(r *Reader) *collection[K, V] {
	if c.c == nil {
		r.permit(nil)
	}
	r.permit(&c.c.header)
	return c.c
}

// cell is what an entry is between two changes. A cell never changes: groups and baselines keep
// cells.
type cell[K comparable, V any] struct {
	key   K
	val   V
	fault *fault
}

// entry is a key of a collection while the key is there.
type entry[K comparable, V any] struct {
	question
	cell *cell[K, V] // nil: the function has returned Skip, or the entry has just gone
}

func (e *entry[K, V]) orphaned() {}

func (e *entry[K, V]) text(c *core) string {
	of := c.nodes[e.node].head()
	if e.cell == nil {
		return of.name + " (an entry that is gone)"
	}
	return named(of, e.cell.key)
}

// hole is an absent key that somebody has looked up.
type hole[K comparable, V any] struct {
	question
	key K
	of  *collection[K, V]
}

func (h *hole[K, V]) orphaned() { delete(h.of.absent, h.key) }

func (h *hole[K, V]) text(*core) string { return named(&h.of.header, h.key) + " (absent)" }

// gone names an entry that is not there any more, as the cause of a run.
type gone[K comparable] struct {
	key K
	of  *header
}

func (g *gone[K]) text(*core) string { return named(g.of, g.key) + " (gone)" }

// named names an entry. That of a value has no key.
func named(of *header, key any) string {
	if text := keyText(key); text != "" {
		return of.name + " " + text
	}
	return of.name
}

// whole is the question for all entries.
type whole struct {
	question
	of *header
}

func (w *whole) orphaned() {}

func (w *whole) text(*core) string { return "all of " + w.of.name }

// change is an entry whose cell is another since the last Update.
type change[K comparable, V any] struct {
	e   *entry[K, V]
	old *cell[K, V] // nil: the entry is new. e.cell nil: the entry is gone.
}

// collection is the node behind a [Collection].
type collection[K comparable, V any] struct {
	header
	table          *table[K]
	owner          bool           // of the table
	entries        []*entry[K, V] // by row
	changed        []change[K, V] // unless it is fresh
	fresh          bool           // it never had an entry before this Update: all that it has is new
	absent         map[K]*hole[K, V]
	whole          whole
	valid, invalid int
	cellBlock      block[cell[K, V]]
	equal          func(a, b V) bool
	// alike compares values that were made at different times, if that is not what equal is for.
	alike func(a, b V) bool
	// printed says that functions make the values. prints has a hash of each value when it was
	// returned, by row, in a graph that is verified or audited.
	printed bool
	prints  map[int32]uint64
	// faulty is an entry that was invalid when it was put last: an example for Stats.
	faulty    *entry[K, V]
	followers []*Changes[K, V]
	// whyAbsent is an error that stands for a key that is not there.
	whyAbsent func(r *Reader, k K) error
}

// own makes the collection the owner of a table. Its keys need an order.
func (c *collection[K, V]) own(of *core) {
	compare, err := orderOf[K]()
	c.ownBy(of, compare, err)
}

// ownBy makes the collection the owner of a table with this order, if there is one.
func (c *collection[K, V]) ownBy(of *core, compare func(a, b K) int, err error) {
	if err != nil {
		of.wrong("%q: the type of its keys: %w", c.name, err)
		compare = func(a, b K) int { return 0 }
	}
	c.owner = true
	c.table = newTable(compare, func(row int32) K { return c.entries[row].cell.key })
}

// find returns the entry of a key, nil if there is none.
func (c *collection[K, V]) find(k K) *entry[K, V] {
	row, ok := c.table.row(k)
	if !ok || int(row) >= len(c.entries) {
		return nil
	}
	if e := c.entries[row]; e != nil && e.cell != nil {
		return e
	}
	return nil
}

// cells returns the cells in the order of their keys.
func (c *collection[K, V]) cells() iter.Seq[*cell[K, V]] {
	return func(yield func(*cell[K, V]) bool) {
		for _, row := range c.table.sorted() {
			if int(row) >= len(c.entries) {
				continue
			}
			if e := c.entries[row]; e != nil && e.cell != nil && !yield(e.cell) {
				return
			}
		}
	}
}

// place puts an entry into its row.
func (c *collection[K, V]) place(row int32, e *entry[K, V]) {
	e.row, e.node = row, c.index
	c.entries = reaching(c.entries, row, nil)
	c.entries[row] = e
}

// put gives an entry another cell, and marks all that have looked it up. An entry is put once in
// an Update. The caller has seen that the cell is another one.
func (c *collection[K, V]) put(e *entry[K, V], next *cell[K, V]) {
	old := e.cell
	e.cell = next
	if !c.fresh {
		c.changed = append(c.changed, change[K, V]{e, old})
	}
	if next != nil && next.fault != nil {
		c.faulty = e
	}
	c.count(old, -1)
	c.count(next, 1)
	if c.changeCount() == 1 {
		c.c.answered(&c.whole, &c.whole)
	}
	for _, f := range c.followers {
		f.keepOld(old, next)
	}
	c.print(e.row, next)
	switch {
	case old == nil:
		if h := c.absent[next.key]; h != nil {
			c.c.answered(h, e)
		}
	case next == nil && e.isAsked():
		c.c.answered(e, &gone[K]{old.key, &c.header})
	default:
		c.c.answered(e, e)
	}
}

// changes yields what has changed in this Update.
func (c *collection[K, V]) changes() iter.Seq[change[K, V]] {
	if !c.fresh {
		return slices.Values(c.changed)
	}
	return func(yield func(change[K, V]) bool) {
		for _, e := range c.entries {
			if e != nil && e.cell != nil && !yield(change[K, V]{e, nil}) {
				return
			}
		}
	}
}

func (c *collection[K, V]) changeCount() int {
	if c.fresh {
		return c.valid + c.invalid
	}
	return len(c.changed)
}

func (c *collection[K, V]) count(x *cell[K, V], by int) {
	switch {
	case x == nil:
	case x.fault != nil:
		c.invalid += by
	default:
		c.valid += by
	}
}

// result gives an entry what its function has returned. It returns false if that is what the entry
// has. The values have been compared already: same says that the value is the one of the entry.
func (c *collection[K, V]) result(e *entry[K, V], k K, v V, err error, same bool) (another bool) {
	old := e.cell
	skipped := errors.Is(err, Skip)
	switch {
	case skipped && old == nil,
		err == nil && same,
		err != nil && !skipped && old != nil && sameFault(old.fault, &fault{err}):
		return false
	case skipped:
		c.put(e, nil)
	case err != nil:
		c.put(e, &cell[K, V]{key: k, fault: &fault{err}})
	default:
		x := c.cellBlock.takeElement(c.c.coming)
		x.key, x.val = k, v
		c.put(e, x)
	}
	return true
}

// same tells whether a value is the one that an entry has.
func (c *collection[K, V]) same(e *entry[K, V], v V) bool {
	return e.cell != nil && e.cell.fault == nil && c.equal(e.cell.val, v)
}

func (c *collection[K, V]) errorOf(x *cell[K, V]) error {
	if x.fault == nil {
		return nil
	}
	return &EntryError{Node: c.name, Key: keyText(x.key), Err: x.fault.err}
}

func (c *collection[K, V]) settle() {
	c.changed, c.fresh = emptied(c.changed), len(c.entries) == 0
	if c.owner {
		c.table.settle()
	}
}

func (c *collection[K, V]) reset() {
	for _, f := range c.followers {
		for _, e := range c.entries {
			if e != nil && e.cell != nil {
				f.keepOld(e.cell, nil)
			}
		}
	}
	c.entries, c.changed, c.absent, c.prints = nil, nil, nil, nil
	c.valid, c.invalid = 0, 0
	c.whole = whole{of: &c.header}
	if c.owner {
		*c.table = *newTable(c.table.compare, c.table.keyAt)
	}
}

func (c *collection[K, V]) size() (valid, invalid int) { return c.valid, c.invalid }

// hole returns the question for an absent key.
func (c *collection[K, V]) hole(k K) *hole[K, V] {
	h := c.absent[k]
	if h == nil {
		h = &hole[K, V]{key: k, of: c}
		if c.absent == nil {
			c.absent = make(map[K]*hole[K, V])
		}
		c.absent[k] = h
	}
	return h
}

// lookUp is Get without a Reader's checks. Most runs look up what the run before has looked up:
// then no key is searched for.
func (c *collection[K, V]) lookUp(r *Reader, k K) (V, error) {
	e, is := r.expected().(*entry[K, V])
	if !is || e.node != c.index || e.cell == nil || e.cell.key != k {
		e = c.find(k)
	}
	if e != nil {
		r.recordQuestion(e)
		return e.cell.val, c.errorOf(e.cell)
	}
	if r.record {
		r.recordQuestion(c.hole(k))
	}
	var none V
	if c.whyAbsent != nil {
		if err := c.whyAbsent(r, k); err != nil {
			return none, err
		}
	}
	return none, ErrNone
}

// validIn returns the cell in a row, if it is there and valid.
func (c *collection[K, V]) validIn(row int) *cell[K, V] {
	if row >= len(c.entries) || c.entries[row] == nil {
		return nil
	}
	if x := c.entries[row].cell; x != nil && x.fault == nil {
		return x
	}
	return nil
}
