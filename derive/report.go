package derive

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/derived"
)

// Stats is what a graph has done. It is of the last Update that ended, and does not change.
type Stats struct {
	Graph   string
	Updates uint64
	Nodes   []NodeStats // in the order of their declaration
	// Impure are the last findings of [Audit], without values: a name, a key, and what differs.
	Impure []string
	// ImpureTotal counts the findings of [Audit].
	ImpureTotal uint64
}

// NodeStats is what one node has done.
type NodeStats struct {
	Name, Kind string
	// Entries are the valid entries: of ByLabels and BySelector the selections that were looked
	// up.
	Entries int
	// Invalid are the invalid entries, and Example is why one of them is.
	Invalid int
	Example error
	// Runs counts the runs of the node's functions, and Equal those whose result was what the
	// entry had: runs for nothing. LastRuns and LastEqual are of the last Update.
	Runs, Equal         uint64
	LastRuns, LastEqual int
	// EqualBecause is why one of the last runs for nothing has run, in the words of [Explanation].
	// It has a key, and no value.
	EqualBecause string
	// Time is how long the node has taken in all, and LastTime in the last Update.
	Time, LastTime time.Duration
}

// counts is what a node counts.
type counts struct {
	runs, equal       int // in this Update
	allRuns, allEqual uint64
	time, lastTime    time.Duration
	equalBecause      string
}

func (n *counts) resetRuns() { n.runs, n.equal = 0, 0 }

// countRun counts a run. It was for nothing if its result is what the entry had. The first run of
// an entry is not: the entry had nothing, even if the function has returned Skip.
func (h *header) countRun(r *runner, another bool) {
	n := &h.counts
	n.runs++
	if another || r.because == nil {
		return
	}
	if n.equal++; n.equal == 1 {
		n.equalBecause = r.because.text(h.c) // once in an Update: it makes a text
	}
}

func (n *counts) took(d time.Duration) {
	n.allRuns += uint64(n.runs)
	n.allEqual += uint64(n.equal)
	n.time += d
	n.lastTime = d
}

// exampled is a node that can say why an entry is invalid.
type exampled interface{ example() error }

// publish makes the figures of an Update known.
func (c *core) publish() {
	s := &Stats{Graph: c.name, Updates: uint64(c.updates), Nodes: make([]NodeStats, 0, len(c.nodes))}
	s.Impure, s.ImpureTotal = slices.Clone(c.impure), c.impures
	for _, n := range c.nodes {
		h := n.head()
		k := h.counts
		row := NodeStats{Name: h.name, Kind: h.kind, Runs: k.allRuns, Equal: k.allEqual,
			LastRuns: k.runs, LastEqual: k.equal, Time: k.time, LastTime: k.lastTime, EqualBecause: k.equalBecause}
		row.Entries, row.Invalid = n.size()
		if e, ok := n.(exampled); ok && row.Invalid > 0 {
			row.Example = e.example()
		}
		s.Nodes = append(s.Nodes, row)
	}
	c.stats.Store(s)
}

// Stats returns what the graph has done. It may be called from any goroutine.
func (g *Graph[S]) Stats() Stats {
	if s := g.c.stats.Load(); s != nil {
		return *s
	}
	return Stats{Graph: g.c.name}
}

// example returns why one entry is invalid.
func (c *collection) example() error {
	faulty := func(e *entry) bool { return e != nil && faultOf(e.cell) != nil }
	if !faulty(c.faulty) {
		i := slices.IndexFunc(c.entries, faulty)
		if i < 0 {
			return nil
		}
		c.faulty = c.entries[i]
	}
	return c.errorOf(c.faulty.cell)
}

func (n *groups) example() error { return n.failed.example(n.name) }

func (n *matched) example() error { return n.failed.example(n.name) }

func (f failures) example(node string) error {
	for k, err := range f {
		return &EntryError{Node: node, Key: keyText(k), Err: err}
	}
	return nil
}

// Explanation is what a graph knows of one entry.
type Explanation struct {
	Node, Key string
	// Found is false if the node has no such entry, or if the graph has no such node.
	Found bool
	// Busy says that an Update is running: ask again.
	Busy bool
	// Err is why the entry is invalid, nil if it is valid.
	Err error
	// LookedUp is what the function looked up when it ran last. Because is what
	// made it run: the entry's input, or one of the look-ups; "it is new" at first. Ran is the
	// number of the Update in which it ran (see [Stats]). They are empty for an entry without a
	// function.
	LookedUp []string
	Because  string
	Ran      uint64
	// AskedBy are the entries that have looked this one up, at most 100 of them.
	AskedBy []string
}

// Explain returns what the graph knows of an entry: what it looked up, and why it ran last. The
// node is given by its name. The key is written with slashes between its parts, as namespace/name;
// it is empty for a value. Explain may be called from any goroutine. It looks at each key of the
// node.
func (g *Graph[S]) Explain(node, key string) Explanation {
	c := g.c
	none := Explanation{Node: node, Key: key}
	// An Update waits for those who are counted. Nobody is counted while one waits or runs, so
	// that it does not wait for ever.
	if c.updating.Load() {
		none.Busy = true
		return none
	}
	c.explaining.Add(1)
	defer c.explaining.Add(-1)
	if c.updating.Load() {
		none.Busy = true
		return none
	}
	if !c.unsound {
		for _, n := range c.nodes {
			h := n.head()
			if h.name != node {
				continue
			}
			if x, found := n.explain(key); found {
				x.Node, x.Key, x.Found = node, key, true
				return x
			}
		}
	}
	return none
}

// explained returns what is known of an entry. run finds the run that made it, if a function did.
// Nothing here searches a table, which would write to it: other goroutines explain meanwhile.
func (c *collection) explained(key string, run func(*entry) *runner) (x Explanation, found bool) {
	for _, e := range c.entries {
		if e == nil || e.cell == nil || keyText(e.cell.anyKey()) != key {
			continue
		}
		if f := faultOf(e.cell); f != nil {
			x.Err = f.err
		}
		if run != nil {
			x.explainRun(c.c, run(e))
		}
		x.AskedBy = c.c.askersOf(&e.question)
		return x, true
	}
	return x, false
}

func (x *Explanation) explainRun(c *core, r *runner) {
	for _, a := range r.asks {
		x.LookedUp = append(x.LookedUp, a.of.text(c))
	}
	x.Ran = uint64(r.ran)
	if x.Because = "it is new"; r.because != nil {
		x.Because = r.because.text(c)
	}
}

func (c *core) askersOf(q *question) (by []string) {
	for at := range min(q.askers(), 100) {
		a := q.asker(int32(at))
		n := c.nodes[a.node]
		by = append(by, strings.TrimSuffix(n.head().name+" "+n.(runners).rowKey(a.row), " "))
	}
	slices.Sort(by)
	return by
}

func (m *mapped) explain(key string) (Explanation, bool) {
	return m.explained(key, func(e *entry) *runner { return m.runner(e.row) })
}

func (v *value) explain(key string) (Explanation, bool) {
	if key != "" || v.one.cell == nil {
		return Explanation{}, false
	}
	x, found := v.explained("", nil)
	if x.AskedBy = v.c.askersOf(&v.one.question); v.f != nil {
		x.explainRun(v.c, &v.one.runner)
	}
	return x, found
}

func (n *matched) explain(string) (Explanation, bool) { return Explanation{}, false }

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
		entries, equal := n.(dumper).dump()
		all = append(all, derived.Node{Name: h.name, Kind: h.kind, Entries: entries, Equal: equal})
	}
	return all
}

func (c *collection) dump() (entries []derived.Entry, equal func(a, b any) bool) {
	for _, row := range c.table.sorted() {
		x := c.cellIn(int(row))
		if x == nil {
			continue
		}
		e := derived.Entry{Key: keyText(x.anyKey())}
		if f := faultOf(x); f != nil {
			e.Err = f.err
		} else {
			e.Value = x.anyValue()
		}
		entries = append(entries, e)
	}
	return entries, c.equal
}

func (n *groups) dump() (entries []derived.Entry, equal func(a, b any) bool) {
	entries, equal = n.collection.dump()
	return append(entries, n.failed.dump()...), equal
}

func (n *matched) dump() (entries []derived.Entry, equal func(a, b any) bool) {
	for _, s := range n.selections {
		entries = append(entries, derived.Entry{Key: s.what(), Value: s.group})
	}
	entries = append(entries, n.failed.dump()...)
	slices.SortFunc(entries, func(a, b derived.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries, n.equal
}

// equalMembers compares groups by their members, since groups of two graphs, and of two times,
// share no cells.
func equalMembers[K comparable, V any](of *collection) func(a, b any) bool {
	return func(a, b any) bool {
		x, _ := a.(Group[K, V])
		y, _ := b.(Group[K, V])
		return slices.EqualFunc(x.cells, y.cells, func(x, y *cellOf[K, V]) bool {
			return x.key == y.key && of.equal(x.val, y.val)
		})
	}
}

// dump names the entries for which the function of an index has panicked.
func (f failures) dump() (entries []derived.Entry) {
	for k, err := range f {
		entries = append(entries, derived.Entry{Key: "(of) " + keyText(k), Err: err})
	}
	slices.SortFunc(entries, func(a, b derived.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries
}
