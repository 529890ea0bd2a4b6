package derive

import (
	"cmp"
	"slices"
)

// Nth is the key of an entry of a [Union]: the number of the collection that it comes from, and
// its key there.
type Nth[K comparable] struct {
	N   int
	Key K
}

// Union has the entries of several collections of one graph, and one index can hold them all. They
// are in the order of the collections, and of their keys within each. No two have one key, since
// [Nth] is the key. An invalid entry is invalid for the same reason.
func Union[K comparable, V any](name string, ins ...Collection[K, V]) Collection[Nth[K], V] {
	if len(ins) == 0 {
		misuse("%q is a union of nothing", name)
	}
	n := &union[K, V]{}
	declareOn(ins[0], n, "Union", name)
	for i, in := range ins {
		if in.c == nil || in.c.c != n.c {
			misuse("%q: collection %d is of another graph, or of none", name, i)
		}
		n.ins = append(n.ins, in.c)
	}
	order := ins[0].c.table.compare
	n.owner = true
	n.table = newTable(
		func(a, b Nth[K]) int { return cmp.Or(cmp.Compare(a.N, b.N), order(a.Key, b.Key)) },
		func(row int32) Nth[K] { return n.entries[row].cell.key })
	// Entries change with those that they come from. This is for those who compare: ChangesOf,
	// tests.
	n.equal = func(a, b V) bool {
		return !slices.ContainsFunc(n.ins, func(in *collection[K, V]) bool { return !in.equal(a, b) })
	}
	n.reset()
	return Collection[Nth[K], V]{&n.collection}
}

// union is the node behind [Union].
type union[K comparable, V any] struct {
	collection[Nth[K], V]
	ins []*collection[K, V]
}

func (n *union[K, V]) explain(key string) (Explanation, bool) { return n.explained(key, nil) }

func (n *union[K, V]) evaluate() {
	for i, in := range n.ins {
		for ch := range in.changes() {
			k := Nth[K]{i, ch.keyOf()}
			e, next := n.find(k), ch.e.cell
			if next == nil {
				n.table.drop(k, e.row)
				n.put(e, nil)
				n.entries[e.row] = nil
				continue
			}
			if e == nil {
				e = &entry[Nth[K], V]{}
				n.place(n.table.add(k), e)
			}
			x := &cell[Nth[K], V]{key: k, val: next.val}
			if next.fault != nil {
				x.fault = &fault{in.errorOf(next)}
			}
			n.put(e, x)
		}
	}
}
