package derive

import (
	"iter"
	"slices"
	"strings"
)

// Group is some entries of a collection, in the order of their keys: the members of an index's
// group, or a selection. It never changes, and may be kept. Invalid entries are in no group.
type Group[K comparable, V any] struct{ cells []*cellOf[K, V] }

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
type edit struct {
	cell cell // the last one of a member that goes
	goes bool
}

// applyEdits returns a group with edits, one for a key, which it sorts. It costs a pointer per
// member. cells is an empty list for them.
func applyEdits[K comparable, V any](g Group[K, V], edits []edit, cells []*cellOf[K, V], byKey func(a, b cell) int) Group[K, V] {
	sortEdits(edits, byKey)
	rest := g.cells
	for _, ed := range edits {
		x := ed.cell.(*cellOf[K, V])
		i, there := slices.BinarySearchFunc(rest, x, func(a, b *cellOf[K, V]) int { return byKey(a, b) })
		cells = append(cells, rest[:i]...)
		if rest = rest[i:]; there {
			rest = rest[1:]
		}
		if !ed.goes {
			cells = append(cells, x)
		}
	}
	return Group[K, V]{append(cells, rest...)}
}

func sortEdits(edits []edit, byKey func(a, b cell) int) {
	slices.SortFunc(edits, func(a, b edit) int { return byKey(a.cell, b.cell) })
}

// orderOfCells returns the order of the cells of a collection, which is that of their keys.
func orderOfCells[K comparable, V any](c *collection) func(a, b cell) int {
	compare := tableOf[K](c).compare
	return func(a, b cell) int { return compare(a.(*cellOf[K, V]).key, b.(*cellOf[K, V]).key) }
}

// Index has the entries of a collection in groups. [GroupBy] makes one.
type Index[I, K comparable, V any] struct{ n *groups }

// GroupBy makes an index: the function returns the groups that an entry is in, none or many. It
// runs when the entry is new or has another value. It has no Reader: what else a group depends on
// belongs to a [Map] before. If it panics, the entry is in no group, and [Stats] tells.
func GroupBy[I, K comparable, V any](in Collection[K, V], name string, of func(K, V) []I) Index[I, K, V] {
	n := &groups{}
	n.equal = equalMembers[K, V](in.c)
	declareOn(in.c, n, "GroupBy", name, of != nil)
	n.in = in.c
	table := own[I, Group[K, V]](&n.collection)
	table.keyAt = func(row int32) I { return keyOf[I, Group[K, V]](n.cellAt(row)) }
	byKey := orderOfCells[K, V](in.c)
	n.listGroups = func(x cell, was []int32) error { return listGroups(n, table, of, x.(*cellOf[K, V]), was) }
	n.regroup = func() { regroup[I, K, V](n, byKey) }
	n.keysFor = func(x cell) (keys []any) {
		for _, i := range of(x.(*cellOf[K, V]).key, x.(*cellOf[K, V]).val) {
			keys = append(keys, i)
		}
		return keys
	}
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
	if x.n.keys == nil {
		if x.n.c.begun {
			misuse("the keys of %q are asked for after the first Update: call Keys before it", x.n.name)
		}
		m := &mapped{quiet: true}
		m.equal = func(any, any) bool { return true }
		m.f = func(_ *Reader, in, was cell) (cell, error) {
			if was != nil {
				return nil, nil
			}
			return &cellOf[I, struct{}]{key: in.(*cellOf[I, Group[K, V]]).key}, nil
		}
		m.over(&x.n.collection, "Keys", x.n.name+" (keys)", true)
		x.n.keys = &m.collection
	}
	return Collection[I, struct{}]{x.n.keys}
}

// groups is the node behind an [Index]: a collection of groups.
type groups struct {
	collection
	in *collection
	// keys is the node of [Index.Keys], if that was called.
	keys    *collection
	members memberships
	failed  failures
	pending

	// These need the types. listGroups lists the rows of the groups of an entry, keysFor returns
	// their keys, and regroup changes the groups.
	listGroups func(x cell, was []int32) error
	keysFor    func(x cell) []any
	regroup    func()
}

// pending is what one Update uses to change groups.
type pending struct {
	// touched are the groups with edits in this Update, and edits are those of all groups.
	// Positions count from 1, so that 0 is none: at[row] is the place of a group in touched,
	// touched.last its newest edit, and chained.before the edit before that.
	touched []touched
	at      []int32
	edits   []chained
	rows    []int32 // of the entry whose change is taken over
	batch   []edit  // of the group that is changed
	block   []entry // of new groups
}

// touched is a group with edits.
type touched struct {
	e         *entry // of a new group, it is not in its row yet, and its cell has but the key
	row, last int32
}

// chained is an edit, and where the one before it in the same group is.
type chained struct {
	cell   cell
	before int32
	goes   bool
}

func (n *groups) reset() {
	n.collection.reset()
	n.members, n.failed = memberships{}, nil
	n.touched, n.at, n.edits = nil, nil, nil
}

func (n *groups) explain(key string) (Explanation, bool) { return n.explained(key, nil) }

func (n *groups) size() (valid, invalid int) { return n.valid, n.invalid + len(n.failed) }

func (n *groups) evaluate() {
	coming := n.in.changeCount()
	n.edits, n.touched = slices.Grow(n.edits, coming), slices.Grow(n.touched, coming)
	if n.fresh {
		n.at, n.members.one = slices.Grow(n.at, coming), slices.Grow(n.members.one, coming)
		n.table.grow(coming)
	}
	for ch := range n.in.changes() {
		n.c.coming = coming
		n.change(ch)
		coming--
	}
	if n.fresh {
		n.entries = slices.Grow(n.entries, len(n.touched))
	}
	n.regroup()
	n.c.endBlocks()
	n.block = nil
	n.touched, n.edits, n.batch = emptied(n.touched), emptied(n.edits), emptied(n.batch)
}

// change takes over the change of one entry, and lists what that changes in the groups.
func (n *groups) change(ch change) {
	next := ch.e.cell
	was := n.members.of(ch.e.row)
	n.rows = n.rows[:0]
	var failure error
	if next != nil && faultOf(next) == nil {
		n.counts.runs++
		failure = n.listGroups(next, was)
		slices.Sort(n.rows)
		n.rows = slices.Compact(n.rows)
	}
	n.failed.set(ch.known(), failure)
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

// cellAt returns a cell with the key of a group. A new one has its entry in the end.
func (n *groups) cellAt(row int32) cell {
	if int(row) < len(n.at) && n.at[row] > 0 {
		return n.touched[n.at[row]-1].e.cell
	}
	return n.entries[row].cell
}

// touch lists a group that gets edits.
func (n *groups) touch(row int32, e *entry) {
	n.at = reaching(n.at, row, 0)
	n.touched = append(n.touched, touched{e: e, row: row})
	n.at[row] = int32(len(n.touched))
}

// edit lists an edit of a group.
func (n *groups) edit(row int32, x cell, goes bool) {
	if n.at[row] == 0 {
		n.touch(row, n.entries[row])
	}
	t := &n.touched[n.at[row]-1]
	n.edits = append(n.edits, chained{x, t.last, goes})
	t.last = int32(len(n.edits))
}

// editsOf returns the edits of a group.
func (n *groups) editsOf(t touched) []edit {
	n.batch = n.batch[:0]
	for at := t.last; at != 0; {
		ed := n.edits[at-1]
		n.batch = append(n.batch, edit{ed.cell, ed.goes})
		at = ed.before
	}
	return n.batch
}

// listGroups runs the function of an index for an entry, and lists the rows of its groups. The
// entry was in some groups before. A group without members gets a row, and will get an edit.
func listGroups[I, K comparable, V any](n *groups, table *table[I], of func(K, V) []I, x *cellOf[K, V], was []int32) error {
	var is []I
	err := n.called(func() error {
		is = of(x.key, x.val)
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range is {
		if len(was) == 1 && table.keyAt(was[0]) == i { // most entries stay in their group
			n.rows = append(n.rows, was[0])
			continue
		}
		row, found := table.row(i)
		if !found {
			row = table.add(i)
			next, e := newCell[I, Group[K, V]](n.c), takeElement(&n.block, n.c.coming)
			next.key, e.cell = i, next
			n.touch(row, e)
		}
		n.rows = append(n.rows, row)
	}
	return nil
}

// regroup changes the members of the groups that have edits.
func regroup[I, K comparable, V any](n *groups, byKey func(a, b cell) int) {
	var lists []*cellOf[K, V]
	for i, t := range n.touched {
		n.c.coming = len(n.touched) - i
		n.at[t.row] = 0
		edits := n.editsOf(t)
		next := t.e.cell.(*cellOf[I, Group[K, V]])
		was := next.val
		if n.cellIn(int(t.row)) == nil {
			t.e.cell = nil
			n.place(t.row, t.e)
		} else {
			next = newCell[I, Group[K, V]](n.c)
			next.key = t.e.cell.(*cellOf[I, Group[K, V]]).key
		}
		room := takeList(&lists, len(was.cells)+len(edits), n.c.coming)
		if next.val = applyEdits(was, edits, room, byKey); next.val.Len() > 0 {
			n.put(t.e, next)
		} else {
			n.drop(t.e)
		}
	}
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

// failures are the keys of the entries for which the function of an index has panicked.
type failures map[any]error

// set says whether the function has panicked for an entry.
func (f *failures) set(of cell, err error) {
	switch {
	case err != nil && *f == nil:
		*f = failures{of.anyKey(): err}
	case err != nil:
		(*f)[of.anyKey()] = err
	case len(*f) > 0:
		delete(*f, of.anyKey())
	}
}

func (n *groups) checks() int { return len(n.in.entries) }

// check runs the function of an index for an entry.
func (n *groups) check(row int) *finding {
	x := n.in.validIn(row)
	if x == nil {
		return nil
	}
	inOrder := func(keys []any) []any {
		slices.SortFunc(keys, n.table.compareKeys)
		return slices.Compact(keys)
	}
	run := func() (o outcome) {
		var keys []any
		o.err = n.called(func() error {
			keys = n.keysFor(x)
			return nil
		})
		o.val = inOrder(keys)
		return o
	}
	var noted []any
	for _, group := range n.members.of(int32(row)) {
		noted = append(noted, n.entries[group].cell.anyKey())
	}
	kept := outcome{inOrder(noted), n.failed[x.anyKey()]}
	return compared(n.name, keyText(x.anyKey()), run, kept, func(a, b any) bool { return slices.Equal(a.([]any), b.([]any)) })
}
