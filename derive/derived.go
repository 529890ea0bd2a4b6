package derive

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/kates-go/kates/internal/derived"
)

func init() {
	derived.Verified = func(graph any) { graph.(Any).graph().verified = true }
	derived.Nodes = func(graph any) []derived.Node { return graph.(Any).graph().dumped() }
	derived.Difference = func(a, b any) string { return difference(reflect.ValueOf(a), reflect.ValueOf(b), "", 0) }
}

// dumper is a node that can be shown as a whole.
type dumper interface {
	dump() (entries []derived.Entry, equal func(a, b any) bool)
}

// dumped returns what all nodes have. It is called between two Updates.
func (c *core) dumped() (all []derived.Node) {
	for _, n := range c.nodes {
		h := n.head()
		if h.part {
			continue // what it has put is in the next node
		}
		entries, equal := n.(dumper).dump()
		all = append(all, derived.Node{Name: h.name, Kind: h.kind, Entries: entries, Equal: equal})
	}
	return all
}

func (c *collection[K, V]) dump() (entries []derived.Entry, equal func(a, b any) bool) {
	for x := range c.cells() {
		e := derived.Entry{Key: keyText(x.key)}
		if x.fault != nil {
			e.Err = x.fault.err
		} else {
			e.Value = x.val
		}
		entries = append(entries, e)
	}
	return entries, equalAny(c.equal)
}

func equalAny[V any](equal func(a, b V) bool) func(a, b any) bool {
	return func(a, b any) bool {
		x, _ := a.(V) // a nil interface is no V
		y, _ := b.(V)
		return equal(x, y)
	}
}

// dump compares groups by their members, since the groups of two graphs share no cells.
func (n *groups[I, K, V]) dump() (entries []derived.Entry, equal func(a, b any) bool) {
	entries, _ = n.collection.dump()
	return append(entries, n.failed.dump()...), equalAny(membersEqual[K](n.in.equal))
}

func (n *matched[K, V]) dump() (entries []derived.Entry, equal func(a, b any) bool) {
	for _, s := range n.selections {
		entries = append(entries, derived.Entry{Key: s.what(), Value: s.group})
	}
	entries = append(entries, n.failed.dump()...)
	slices.SortFunc(entries, func(a, b derived.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries, equalAny(membersEqual[K](n.in.equal))
}

func membersEqual[K comparable, V any](equal func(a, b V) bool) func(a, b Group[K, V]) bool {
	return func(a, b Group[K, V]) bool {
		return slices.EqualFunc(a.cells, b.cells, func(x, y *cell[K, V]) bool {
			return x.key == y.key && equal(x.val, y.val)
		})
	}
}

// dump names the entries for which the function of an index has panicked.
func (f failures[K]) dump() (entries []derived.Entry) {
	for k, err := range f {
		entries = append(entries, derived.Entry{Key: "(of) " + keyText(k), Err: err})
	}
	slices.SortFunc(entries, func(a, b derived.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries
}
