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
type Collection[K comparable, V any] struct{ c *collection }

// Get returns the value of a key. The error is [ErrNone] if there is none, and an [*EntryError] if
// the entry is invalid. A function that has called Get runs again when the answer for this key
// changes.
func (c Collection[K, V]) Get(r *Reader, k K) (V, error) {
	return lookUp[K, V](c.c.permitted(r), r, k)
}

// All returns the valid entries in the order of their keys. A function that has called All, Len or
// Invalid runs again when anything in the collection changes: an index or a selection costs less.
func (c Collection[K, V]) All(r *Reader) iter.Seq2[K, V] {
	in := c.c.lookedUp(r)
	return func(yield func(K, V) bool) {
		for _, row := range in.permitted(r).table.sorted() {
			if x, is := in.cellIn(int(row)).(*cellOf[K, V]); is && !yield(x.key, x.val) {
				return
			}
		}
	}
}

// Invalid returns the invalid entries in the order of their keys, each with its reason.
func (c Collection[K, V]) Invalid(r *Reader) iter.Seq2[K, error] {
	in := c.c.lookedUp(r)
	return func(yield func(K, error) bool) {
		for _, row := range in.permitted(r).table.sorted() {
			if f := faultOf(in.cellIn(int(row))); f != nil && !yield(f.key.(K), f.err) {
				return
			}
		}
	}
}

// Len returns the number of valid entries.
func (c Collection[K, V]) Len(r *Reader) int { return c.c.lookedUp(r).valid }

// cell is what an entry is between two changes: a value, which is a [cellOf], or a [fault]. A cell
// never changes: groups and baselines keep cells.
//
// The graph itself knows no types of keys and values: it has entries, which have cells. So it is
// compiled once. A generic engine would be compiled anew for each pair of types of a program.
// [Collection] and the other public types are doors to it, which know the types behind them.
type cell interface {
	anyKey() any
	anyValue() any // nil of a fault
}

// cellOf is a value of a collection with these types.
type cellOf[K comparable, V any] struct {
	key K
	val V
}

func (x *cellOf[K, V]) anyKey() any   { return x.key }
func (x *cellOf[K, V]) anyValue() any { return x.val }

// keyOf returns the key of a cell.
func keyOf[K comparable, V any](x cell) K {
	if x, is := x.(*cellOf[K, V]); is {
		return x.key
	}
	return x.anyKey().(K)
}

// entry is a key of a collection while the key is there.
type entry struct {
	question
	cell cell // nil: the function has returned Skip, or the entry has just gone
}

func (e *entry) orphaned() {}

func (e *entry) text(c *core) string {
	of := c.nodes[e.node].head()
	if e.cell == nil {
		return of.name + " (an entry that is gone)"
	}
	return named(of, e.cell.anyKey())
}

// change is an entry whose cell is another since the last Update.
type change struct {
	e   *entry
	old cell // nil: the entry is new. e.cell nil: the entry is gone.
}

// known returns a cell with the key of what has changed.
func (ch change) known() cell {
	if ch.e.cell != nil {
		return ch.e.cell
	}
	return ch.old
}

// collection is the node behind a [Collection], without its types.
type collection struct {
	header
	table          rows     // a table of its keys
	owner          bool     // of the table
	entries        []*entry // by row
	changed        []change // unless it is fresh
	fresh          bool     // it never had an entry before this Update: all that it has is new
	valid, invalid int
	absent         map[any]*hole
	whole          whole
	printed        printed
	// equal compares two values, also those of different times and of different graphs.
	equal func(a, b any) bool
	// whyAbsent is an error that stands for a key that is not there. Nil: there is none.
	whyAbsent func(r *Reader, key any) error
	// faulty is an entry that was invalid when it was put last: an example for Stats.
	faulty    *entry
	followers []follower
}

// follower is told of each change, when it happens.
type follower interface{ keepOld(old, next cell) }

// equalAny returns a comparison of values whose type is not known.
func equalAny[V any](equal func(a, b V) bool) func(a, b any) bool {
	return func(a, b any) bool {
		x, _ := a.(V) // a nil interface is no V
		y, _ := b.(V)
		return equal(x, y)
	}
}

// own makes the collection the owner of a table. Its keys need an order.
func own[K comparable, V any](c *collection) *table[K] {
	compare, err := orderOf[K]()
	return ownBy[K, V](c, compare, err)
}

// ownBy makes the collection the owner of a table with this order, if there is one.
func ownBy[K comparable, V any](c *collection, compare func(a, b K) int, err error) *table[K] {
	if err != nil {
		c.c.wrong("%q: the type of its keys: %w", c.name, err)
		compare = func(a, b K) int { return 0 }
	}
	t := newTable(compare, func(row int32) K { return keyOf[K, V](c.entries[row].cell) })
	c.table, c.owner = t, true
	return t
}

// tableOf returns the table of a collection with keys of this type.
func tableOf[K comparable](c *collection) *table[K] { return c.table.(*table[K]) }

// find returns the entry of a key, nil if there is none.
func find[K comparable](c *collection, k K) *entry {
	if row, ok := tableOf[K](c).row(k); ok && c.cellIn(int(row)) != nil {
		return c.entries[row]
	}
	return nil
}

// lookUp is Get without a Reader's checks. Most runs look up what the run before has looked up:
// then no key is searched for.
func lookUp[K comparable, V any](c *collection, r *Reader, k K) (v V, err error) {
	e := c.expected(r)
	if e == nil || keyOf[K, V](e.cell) != k {
		e = find(c, k)
	}
	if e != nil {
		r.recordQuestion(e)
		if x, is := e.cell.(*cellOf[K, V]); is {
			return x.val, nil
		}
		return v, c.errorOf(e.cell)
	}
	if r.record {
		h := c.absent[k]
		if h == nil {
			h = c.addHole(k)
		}
		r.recordQuestion(h)
	}
	if c.whyAbsent != nil {
		if err := c.whyAbsent(r, k); err != nil {
			return v, err
		}
	}
	return v, ErrNone
}

// another returns a new cell with a value, nil if an entry has an equal value already.
func another[K comparable, V any](c *core, was cell, k K, v V, equal func(a, b V) bool) cell {
	if x, is := was.(*cellOf[K, V]); is && equal(x.val, v) {
		return nil
	}
	x := newCell[K, V](c)
	x.key, x.val = k, v
	return x
}

// newCell returns an empty cell. The cells of a node that come at once are in blocks.
func newCell[K comparable, V any](c *core) *cellOf[K, V] {
	block, is := c.cellBlock.(*[]cellOf[K, V])
	switch {
	case is:
	case c.coming < 2:
		return new(cellOf[K, V])
	default:
		block = new([]cellOf[K, V])
		c.cellBlock = block
	}
	return takeElement(block, c.coming)
}

// permitted returns the collection, if the Reader may read it.
func (c *collection) permitted(r *Reader) *collection {
	if c == nil {
		r.permit(nil)
	}
	r.permit(&c.header)
	return c
}

// expected returns the entry that the run before has looked up next, nil if that is another thing.
func (c *collection) expected(r *Reader) *entry {
	if e, is := r.expected().(*entry); is && e.node == c.index && e.cell != nil {
		return e
	}
	return nil
}

// lookedUp returns the collection, all of which is looked up.
func (c *collection) lookedUp(r *Reader) *collection {
	c.permitted(r)
	r.recordQuestion(&c.whole)
	return c
}

// cellIn returns the cell in a row, nil if there is none.
func (c *collection) cellIn(row int) cell {
	if row >= len(c.entries) || c.entries[row] == nil {
		return nil
	}
	return c.entries[row].cell
}

// validIn returns the cell in a row, if it is there and valid.
func (c *collection) validIn(row int) cell {
	if x := c.cellIn(row); faultOf(x) == nil {
		return x
	}
	return nil
}

// place puts an entry into its row.
func (c *collection) place(row int32, e *entry) {
	e.row, e.node = row, c.index
	c.entries = reaching(c.entries, row, nil)
	c.entries[row] = e
}

// put gives an entry another cell, and marks all that have looked it up. An entry is put once in
// an Update. The caller has seen that the cell is another one.
func (c *collection) put(e *entry, next cell) {
	old := e.cell
	e.cell = next
	if !c.fresh {
		c.changed = append(c.changed, change{e, old})
	}
	c.count(old, -1)
	if c.count(next, 1) {
		c.faulty = e
	}
	if c.changeCount() == 1 {
		c.c.answered(&c.whole, &c.whole)
	}
	for _, f := range c.followers {
		f.keepOld(old, next)
	}
	c.print(e.row, next)
	switch {
	case old == nil:
		if len(c.absent) > 0 {
			if h := c.absent[next.anyKey()]; h != nil {
				c.c.answered(h, e)
			}
		}
	case next == nil && e.isAsked():
		c.c.answered(e, &gone{old.anyKey(), &c.header})
	default:
		c.c.answered(e, e)
	}
}

// drop takes an entry and its key out.
func (c *collection) drop(e *entry) {
	c.table.drop(e.row)
	c.put(e, nil)
	c.entries[e.row] = nil
}

// changes yields what has changed in this Update.
func (c *collection) changes() iter.Seq[change] {
	if !c.fresh {
		return slices.Values(c.changed)
	}
	return func(yield func(change) bool) {
		for _, e := range c.entries {
			if e != nil && e.cell != nil && !yield(change{e, nil}) {
				return
			}
		}
	}
}

func (c *collection) changeCount() int {
	if c.fresh {
		return c.valid + c.invalid
	}
	return len(c.changed)
}

// count counts a cell, and tells whether it is invalid.
func (c *collection) count(x cell, by int) (invalid bool) {
	switch {
	case x == nil:
	case faultOf(x) != nil:
		c.invalid += by
		return true
	default:
		c.valid += by
	}
	return false
}

// result gives an entry what its function has returned for an input: another cell, nil for what
// the entry has, or an error. It returns false if the entry has that already.
func (c *collection) result(e *entry, in, next cell, err error) (another bool) {
	switch skipped := errors.Is(err, Skip); {
	case skipped && e.cell == nil, err == nil && next == nil,
		err != nil && !skipped && sameFault(faultOf(e.cell), &fault{err: err}):
		return false
	case err != nil && !skipped:
		next = &fault{in.anyKey(), err}
	}
	c.put(e, next)
	return true
}

func (c *collection) errorOf(x cell) error {
	if f := faultOf(x); f != nil {
		return &EntryError{Node: c.name, Key: keyText(f.key), Err: f.err}
	}
	return nil
}

func (c *collection) settle() {
	c.changed, c.fresh = emptied(c.changed), len(c.entries) == 0
	if c.owner {
		c.table.settle()
	}
}

func (c *collection) reset() {
	for _, f := range c.followers {
		for _, e := range c.entries {
			if e != nil && e.cell != nil {
				f.keepOld(e.cell, nil)
			}
		}
	}
	c.entries, c.changed, c.absent, c.printed.prints = nil, nil, nil, nil
	c.valid, c.invalid = 0, 0
	c.whole = whole{of: &c.header}
	if c.owner {
		c.table.reset()
	}
}

func (c *collection) size() (valid, invalid int) { return c.valid, c.invalid }
