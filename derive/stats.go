package derive

import (
	"cmp"
	"slices"
	"time"
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

func (n *counts) begin() { n.runs, n.equal = 0, 0 }

// wasted counts a run whose result is what the entry had. The first run of an entry is none: the
// entry had nothing, even if the function has returned Skip.
func (n *counts) wasted(r *runner) {
	if r.because == nil {
		return
	}
	if n.equal++; n.equal == 1 {
		n.equalBecause = r.because.text() // once in an Update: it makes a text
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
	var part counts
	for _, n := range c.nodes {
		h := n.head()
		k := h.counts
		if h.part {
			part = k
			continue
		}
		k.add(part)
		part = counts{}
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

func (n *counts) add(m counts) {
	n.runs += m.runs
	n.equal += m.equal
	n.allRuns += m.allRuns
	n.allEqual += m.allEqual
	n.time += m.time
	n.lastTime += m.lastTime
	n.equalBecause = cmp.Or(n.equalBecause, m.equalBecause)
}

// Stats returns what the graph has done. It may be called from any goroutine.
func (g *Graph[S]) Stats() Stats {
	if s := g.c.stats.Load(); s != nil {
		return *s
	}
	return Stats{Graph: g.c.name}
}

// example returns why one entry is invalid.
func (c *collection[K, V]) example() error {
	faulty := func(e *entry[K, V]) bool { return e != nil && e.cell != nil && e.cell.fault != nil }
	if !faulty(c.faulty) {
		i := slices.IndexFunc(c.entries, faulty)
		if i < 0 {
			return nil
		}
		c.faulty = c.entries[i]
	}
	return c.errorOf(c.faulty.cell)
}

func (n *groups[I, K, V]) example() error { return n.failed.example(n.name) }

func (n *matched[K, V]) example() error { return n.failed.example(n.name) }

func (f failures[K]) example(node string) error {
	for k, err := range f {
		return &EntryError{Node: node, Key: keyText(k), Err: err}
	}
	return nil
}
