package derive

import (
	"iter"
	"slices"
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

// Equal tells whether two groups have the same members, with the same values: a value that was made
// again is another one.
func (g Group[K, V]) Equal(other Group[K, V]) bool { return slices.Equal(g.cells, other.cells) }

// edit is a member that comes, goes, or has another value.
type edit[K comparable, V any] struct {
	key  K
	next *cell[K, V] // nil: it goes
}

// edited returns a group with edits, whose keys are in order. It costs a pointer per member.
func (g Group[K, V]) edited(edits []edit[K, V], compare func(a, b K) int) Group[K, V] {
	cells := make([]*cell[K, V], 0, len(g.cells)+len(edits))
	rest := g.cells
	for _, ed := range edits {
		i, there := slices.BinarySearchFunc(rest, ed.key, func(x *cell[K, V], k K) int { return compare(x.key, k) })
		cells = append(cells, rest[:i]...)
		if rest = rest[i:]; there {
			rest = rest[1:]
		}
		if ed.next != nil {
			cells = append(cells, ed.next)
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

// GroupBy makes an index: the function returns the groups that an entry is in, none or many. It runs
// when the entry is new or has another value. It has no Reader: what else a group depends on belongs
// to a [Map] before. If it panics, the entry is in no group, and [Stats] tells.
func GroupBy[I, K comparable, V any](in Collection[K, V], name string, of func(K, V) []I) Index[I, K, V] {
	n := &groups[I, K, V]{of: of}
	declareOn(in, n, "GroupBy", name)
	if of == nil {
		n.c.wrong("%q has no function", name)
	}
	n.in = in.c
	n.equal = Group[K, V].Equal
	n.own(n.c)
	n.reset()
	return Index[I, K, V]{n}
}

// Members returns the group of i, which may be empty. A function that has called Members runs again
// when the group's members, or their values, change.
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

// Keys returns the keys of the groups that have members, as a collection of its own: its entries do
// not change with the members.
func (x Index[I, K, V]) Keys() Collection[I, struct{}] {
	if x.n != nil && x.n.keys.c == nil {
		x.n.keys = Map(x.Groups(), x.n.name+" (keys)", func(*Reader, I, Group[K, V]) (struct{}, error) {
			return struct{}{}, nil
		})
	}
	if x.n == nil {
		return Collection[I, struct{}]{}
	}
	return x.n.keys
}

// groups is the node behind an [Index]: a collection of groups.
type groups[I, K comparable, V any] struct {
	collection[I, Group[K, V]]
	in *collection[K, V]
	of func(K, V) []I
	// keys is the node of [Index.Keys], if that was called.
	keys Collection[I, struct{}]
	// groupsOf has the groups that each entry is in, by its row.
	groupsOf [][]I
	failed   failures[K]
}

func (n *groups[I, K, V]) reset() {
	n.collection.reset()
	n.groupsOf = nil
	n.failed = nil
}

func (n *groups[I, K, V]) explain(key string) (Explanation, bool) { return n.explained(key, nil) }

func (n *groups[I, K, V]) size() (valid, invalid int) { return n.valid, n.invalid + len(n.failed) }

func (n *groups[I, K, V]) evaluate() {
	if len(n.in.changed) == 0 {
		return
	}
	edits := make(map[I][]edit[K, V])
	for _, ch := range n.in.changed {
		row := int(ch.e.row)
		for row >= len(n.groupsOf) {
			n.groupsOf = append(n.groupsOf, nil)
		}
		was := n.groupsOf[row]
		var is []I
		var key K
		next := ch.e.cell
		if ch.old != nil {
			key = ch.old.key
		}
		if next != nil {
			key = next.key
			is = n.groupsFor(next)
		}
		n.failed.settle(key, next != nil)
		for _, i := range was {
			if !slices.Contains(is, i) {
				edits[i] = append(edits[i], edit[K, V]{key, nil})
			}
		}
		for _, i := range is {
			edits[i] = append(edits[i], edit[K, V]{key, next})
		}
		n.groupsOf[row] = is
	}
	for i, some := range edits {
		n.edit(i, some)
	}
}

// groupsFor returns the groups of an entry, each once.
func (n *groups[I, K, V]) groupsFor(x *cell[K, V]) []I {
	if x.fault != nil {
		n.failed.note(x.key, nil)
		return nil
	}
	var is []I
	n.counts.runs++
	err := n.called(func() error {
		is = n.of(x.key, x.val)
		return nil
	})
	n.failed.note(x.key, err)
	if len(is) < 2 {
		return is
	}
	once := make([]I, 0, len(is))
	seen := make(map[I]struct{}, len(is))
	for _, i := range is {
		if _, has := seen[i]; !has {
			seen[i] = struct{}{}
			once = append(once, i)
		}
	}
	return once
}

// edit changes the members of one group.
func (n *groups[I, K, V]) edit(i I, edits []edit[K, V]) {
	compare := n.in.table.compare
	slices.SortFunc(edits, func(a, b edit[K, V]) int { return compare(a.key, b.key) })
	e := n.find(i)
	var was Group[K, V]
	if e != nil {
		was = e.cell.val
	}
	is := was.edited(edits, compare)
	switch {
	case is.Len() > 0:
		if e == nil {
			e = &entry[I, Group[K, V]]{}
			n.place(n.table.add(i), e)
		}
		n.put(e, &cell[I, Group[K, V]]{key: i, val: is})
	case e != nil:
		n.table.drop(i)
		n.put(e, nil)
		n.entries[e.row] = nil
	}
}

// failures are the entries for which the function of an index has panicked.
type failures[K comparable] map[K]error

func (f *failures[K]) note(k K, err error) {
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
