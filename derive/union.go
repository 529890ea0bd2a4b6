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
	n := &union{}
	declareOn(ins[0].c, n, "Union", name, true)
	for i, in := range ins {
		if in.c == nil || in.c.c != n.c {
			misuse("%q: collection %d is of another graph, or of none", name, i)
		}
		n.ins = append(n.ins, in.c)
	}
	order := tableOf[K](ins[0].c).compare
	table := ownBy[Nth[K], V](&n.collection, func(a, b Nth[K]) int { return cmp.Or(cmp.Compare(a.N, b.N), order(a.Key, b.Key)) }, nil)
	// Entries change with those that they come from. This is for those who compare: ChangesOf,
	// tests.
	n.equal = func(a, b any) bool {
		return !slices.ContainsFunc(n.ins, func(in *collection) bool { return !in.equal(a, b) })
	}
	n.copyChange = func(of int, ch change) {
		k := Nth[K]{of, keyOf[K, V](ch.known())}
		e := find(&n.collection, k)
		if ch.e.cell == nil {
			n.drop(e)
			return
		}
		if e == nil {
			e = &entry{}
			n.place(table.add(k), e)
		}
		if x, is := ch.e.cell.(*cellOf[K, V]); is {
			n.put(e, &cellOf[Nth[K], V]{k, x.val})
		} else {
			n.put(e, &fault{k, n.ins[of].errorOf(ch.e.cell)})
		}
	}
	n.reset()
	return Collection[Nth[K], V]{&n.collection}
}

// union is the node behind [Union].
type union struct {
	collection
	ins []*collection
	// copyChange takes over a change of a collection.
	copyChange func(of int, ch change)
}

func (n *union) explain(key string) (Explanation, bool) { return n.explained(key, nil) }

func (n *union) evaluate() {
	for i, in := range n.ins {
		for ch := range in.changes() {
			n.copyChange(i, ch)
		}
	}
}
