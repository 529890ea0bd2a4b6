package derive

import (
	"iter"
	"slices"
	"strings"
)

// Group is some entries of a collection, in the order of their keys: the members of an index's
// group, or a selection. It never changes, and may be kept. Invalid entries are in no group.
type Group[K comparable, V any] struct{ cells []*cell[K, V] }

// Len returns the number of members.
func (g Group[K, V]) Len() int { return len(g.cells) }

// All returns the members in the order of their keys.
func (g Group[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, x := range g.cells {
			if !yield(x.key, x.val) {
				return
			}
		}
	}
}

// String returns the keys of the members.
func (g Group[K, V]) String() string {
	keys := make([]string, len(g.cells))
	for i, x := range g.cells {
		keys[i] = keyText(x.key)
	}
	return "[" + strings.Join(keys, " ") + "]"
}

// Equal tells whether two groups have the same members, with the same values: a value that was
// made again is another one.
func (g Group[K, V]) Equal(other Group[K, V]) bool { return slices.Equal(g.cells, other.cells) }

// edit is a member that comes, goes, or has another value.
type edit[K comparable, V any] struct {
	cell *cell[K, V] // the last one of a member that goes
	goes bool
}

// edited returns a group with edits, one for a key, which it sorts. It costs a pointer per member.
//
// cells is an empty list for them.
func (g Group[K, V]) edited(edits []edit[K, V], cells []*cell[K, V], compare func(a, b K) int) Group[K, V] {
	byKey := func(a, b *cell[K, V]) int { return compare(a.key, b.key) }
	slices.SortFunc(edits, func(a, b edit[K, V]) int { return byKey(a.cell, b.cell) })
	rest := g.cells
	for _, ed := range edits {
		i, there := slices.BinarySearchFunc(rest, ed.cell, byKey)
		cells = append(cells, rest[:i]...)
		if rest = rest[i:]; there {
			rest = rest[1:]
		}
		if !ed.goes {
			cells = append(cells, ed.cell)
		}
	}
	return Group[K, V]{append(cells, rest...)}
}

// groupOf returns a group of cells in any order.
func groupOf[K comparable, V any](cells []*cell[K, V], compare func(a, b K) int) Group[K, V] {
	slices.SortFunc(cells, func(a, b *cell[K, V]) int { return compare(a.key, b.key) })
	return Group[K, V]{cells}
}

// Index has the entries of a collection in groups. [GroupBy] makes one.
type Index[I, K comparable, V any] struct{ n *groups[I, K, V] }

// GroupBy makes an index: the function returns the groups that an entry is in, none or many. It
// runs when the entry is new or has another value. It has no Reader: what else a group depends on
// belongs to a [Map] before. If it panics, the entry is in no group, and [Stats] tells.
func GroupBy[I, K comparable, V any](in Collection[K, V], name string, of func(K, V) []I) Index[I, K, V] {
	n := &groups[I, K, V]{of: of}
	declareOn(in, n, "GroupBy", name)
	if of == nil {
		n.c.wrong("%q has no function", name)
	}
	n.in = in.c
	n.equal = Group[K, V].Equal
	n.alike = membersEqual[K](n.in.equal)
	n.own(n.c)
	n.table.keyAt = n.keyAt
	n.reset()
	return Index[I, K, V]{n}
}

// Members returns the group of i, which may be empty. A function that has called Members runs
// again when the group's members, or their values, change.
func (x Index[I, K, V]) Members(r *Reader, i I) Group[K, V] {
	g, _ := x.Groups().Get(r, i)
	return g
}

// Groups returns the groups that have members, as a collection.
func (x Index[I, K, V]) Groups() Collection[I, Group[K, V]] {
	if x.n == nil {
		return Collection[I, Group[K, V]]{}
	}
	return Collection[I, Group[K, V]]{&x.n.collection}
}

// Keys returns the keys of the groups that have members, as a collection of its own: its entries
// do not change with the members. The first call declares a node: it comes before the first
// Update.
func (x Index[I, K, V]) Keys() Collection[I, struct{}] {
	if x.n == nil {
		return Collection[I, struct{}]{}
	}
	if x.n.keys.c == nil {
		if x.n.c.begun {
			misuse("the keys of %q are asked for after the first Update: call Keys before it", x.n.name)
		}
		m := &mapped[I, Group[K, V], struct{}]{quiet: true}
		m.f = func(*Reader, I, Group[K, V]) (struct{}, error) { return struct{}{}, nil }
		m.equal = func(struct{}, struct{}) bool { return true }
		declareOn(x.Groups(), m, "Keys", x.n.name+" (keys)")
		m.over(x.Groups())
		x.n.keys = Collection[I, struct{}]{&m.collection}
	}
	return x.n.keys
}

// groups is the node behind an [Index]: a collection of groups.
type groups[I, K comparable, V any] struct {
	collection[I, Group[K, V]]
	in *collection[K, V]
	of func(K, V) []I
	// keys is the node of [Index.Keys], if that was called.
	keys    Collection[I, struct{}]
	members memberships
	failed  failures[K]
	pending[I, K, V]
}

// pending is what one Update uses to change groups.
type pending[I, K comparable, V any] struct {
	// touched are the groups with edits in this Update, and edits are those of all groups.
	// Positions count from 1, so that 0 is none: at[row] is the place of a group in touched,
	// touched.last its newest edit, and chained.before the edit before that.
	touched []touched[I, K, V]
	at      []int32
	edits   []chained[K, V]
	rows    []int32      // of the entry whose change is taken over
	batch   []edit[K, V] // of the group that is changed
	// coming is how many changes are still to be taken over, or groups to be changed. What they
	// need comes in blocks.
	coming      int
	entryBlock  block[entry[I, Group[K, V]]]
	memberBlock block[*cell[K, V]]
}

// touched is a group with edits.
type touched[I, K comparable, V any] struct {
	next      *cell[I, Group[K, V]] // its key is there, and its members are in the end
	row, last int32
}

// chained is an edit, and where the one before it in the same group is.
type chained[K comparable, V any] struct {
	cell   *cell[K, V]
	before int32
	goes   bool
}

func (n *groups[I, K, V]) reset() {
	n.collection.reset()
	n.members, n.failed = memberships{}, nil
	n.touched, n.at, n.edits = nil, nil, nil
}

func (n *groups[I, K, V]) explain(key string) (Explanation, bool) { return n.explained(key, nil) }

func (n *groups[I, K, V]) size() (valid, invalid int) { return n.valid, n.invalid + len(n.failed) }

func (n *groups[I, K, V]) evaluate() {
	n.coming = n.in.changeCount()
	n.edits, n.touched = slices.Grow(n.edits, n.coming), slices.Grow(n.touched, n.coming)
	if n.fresh {
		n.at, n.members.one = slices.Grow(n.at, n.coming), slices.Grow(n.members.one, n.coming)
		n.table.order = slices.Grow(n.table.order, n.coming)
	}
	for ch := range n.in.changes() {
		n.change(ch)
		n.coming--
	}
	n.coming = len(n.touched)
	n.entries = slices.Grow(n.entries, int(n.table.size)-len(n.entries))
	for _, t := range n.touched {
		n.apply(t)
		n.coming--
	}
	n.entryBlock, n.memberBlock, n.cellBlock = nil, nil, nil
	n.touched, n.edits, n.batch = emptied(n.touched), emptied(n.edits), emptied(n.batch)
}

// change takes over the change of one entry, and lists what that changes in the groups.
func (n *groups[I, K, V]) change(ch change[K, V]) {
	next := ch.e.cell
	was := n.members.of(ch.e.row)
	n.rows = n.rows[:0]
	if next != nil {
		for _, i := range n.groupsFor(next) {
			n.rows = append(n.rows, n.rowOf(i, was))
		}
		slices.Sort(n.rows)
		n.rows = slices.Compact(n.rows)
	}
	n.failed.settle(ch.keyOf(), next != nil)
	for _, row := range was {
		if _, stays := slices.BinarySearch(n.rows, row); !stays {
			n.edit(row, ch.old, true)
		}
	}
	for _, row := range n.rows {
		n.edit(row, next, false)
	}
	n.members.set(ch.e.row, n.rows)
}

// groupsFor returns the groups of an entry.
func (n *groups[I, K, V]) groupsFor(x *cell[K, V]) (is []I) {
	if x.fault != nil {
		n.failed.setFailure(x.key, nil)
		return nil
	}
	n.counts.runs++
	err := n.called(func() error {
		is = n.of(x.key, x.val)
		return nil
	})
	n.failed.setFailure(x.key, err)
	return is
}

// keyAt returns the key of a group. A new one has its entry in the end.
func (n *groups[I, K, V]) keyAt(row int32) I {
	if int(row) < len(n.at) && n.at[row] > 0 {
		return n.touched[n.at[row]-1].next.key
	}
	return n.entries[row].cell.key
}

// rowOf returns the row of a group. Most entries stay in the group that they were in. A group
// without members gets a row, and will get an edit.
func (n *groups[I, K, V]) rowOf(i I, was []int32) int32 {
	if len(was) == 1 && n.keyAt(was[0]) == i {
		return was[0]
	}
	row, found := n.table.row(i)
	if !found {
		row = n.table.add(i)
		n.touch(i, row)
	}
	return row
}

func (n *groups[I, K, V]) touch(i I, row int32) {
	n.at = reaching(n.at, row, 0)
	next := n.cellBlock.takeElement(n.coming)
	next.key = i
	n.touched = append(n.touched, touched[I, K, V]{next: next, row: row})
	n.at[row] = int32(len(n.touched))
}

// edit lists an edit of a group.
func (n *groups[I, K, V]) edit(row int32, x *cell[K, V], goes bool) {
	if n.at[row] == 0 {
		n.touch(n.entries[row].cell.key, row)
	}
	t := &n.touched[n.at[row]-1]
	n.edits = append(n.edits, chained[K, V]{x, t.last, goes})
	t.last = int32(len(n.edits))
}

// apply changes the members of one group.
func (n *groups[I, K, V]) apply(t touched[I, K, V]) {
	n.at[t.row] = 0
	n.batch = n.batch[:0]
	for at := t.last; at != 0; {
		ed := n.edits[at-1]
		n.batch = append(n.batch, edit[K, V]{ed.cell, ed.goes})
		at = ed.before
	}
	n.entries = reaching(n.entries, t.row, nil)
	if n.entries[t.row] == nil {
		n.place(t.row, n.entryBlock.takeElement(n.coming))
	}
	e := n.entries[t.row]
	var was Group[K, V]
	if e.cell != nil {
		was = e.cell.val
	}
	room := n.memberBlock.room(len(was.cells)+len(n.batch), n.coming)
	if t.next.val = was.edited(n.batch, room, n.in.table.compare); t.next.val.Len() > 0 {
		n.put(e, t.next)
		return
	}
	n.table.drop(t.next.key, t.row)
	n.put(e, nil)
	n.entries[t.row] = nil
}

// memberships has the groups that each entry is in, by the rows of both. Most entries are in one.
type memberships struct {
	one  []int32 // -1: the entry is in none, or in several
	many map[int32][]int32
}

// of returns the groups of an entry, until they are set.
func (m *memberships) of(row int32) []int32 {
	if int(row) < len(m.one) && m.one[row] >= 0 {
		return m.one[row : row+1]
	}
	return m.many[row]
}

func (m *memberships) set(row int32, groups []int32) {
	m.one = reaching(m.one, row, -1)
	m.one[row] = -1
	delete(m.many, row)
	switch len(groups) {
	case 0:
	case 1:
		m.one[row] = groups[0]
	default:
		if m.many == nil {
			m.many = make(map[int32][]int32)
		}
		m.many[row] = slices.Clone(groups)
	}
}

// failures are the entries for which the function of an index has panicked.
type failures[K comparable] map[K]error

func (f *failures[K]) setFailure(k K, err error) {
	if err == nil {
		delete(*f, k)
		return
	}
	if *f == nil {
		*f = make(failures[K])
	}
	(*f)[k] = err
}

// settle forgets an entry that is gone.
func (f *failures[K]) settle(k K, there bool) {
	if !there {
		delete(*f, k)
	}
}

func (n *groups[I, K, V]) checks() int { return len(n.in.entries) }

// check runs the function of an index for an entry.
func (n *groups[I, K, V]) check(row int) *finding {
	x := n.in.validIn(row)
	if x == nil {
		return nil
	}
	inOrder := func(is []I) []I {
		is = slices.SortedFunc(slices.Values(is), n.table.compare)
		return slices.Compact(is)
	}
	run := func() (o outcome) {
		var is []I
		o.err = n.called(func() error {
			is = n.of(x.key, x.val)
			return nil
		})
		o.val = inOrder(is)
		return o
	}
	return compared(n.name, keyText(x.key), run, outcome{inOrder(n.groupsNoted(int32(row))), n.failed[x.key]}, slices.Equal[[]I])
}

// groupsNoted returns the groups of the entry in a row.
func (n *groups[I, K, V]) groupsNoted(row int32) (is []I) {
	for _, group := range n.members.of(row) {
		is = append(is, n.entries[group].cell.key)
	}
	return is
}
