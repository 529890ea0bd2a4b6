package page

import (
	"net/url"
	"slices"
	"strings"

	"github.com/kates-go/kates/derive"
)

// Derived has the page say what a graph of package derive does: how many entries its nodes have,
// how often their functions ran, and how often for nothing. Of one entry it says what it looked up
// and why it ran last. It shows keys and no values. A graph takes the place of one of the same
// name, so a name tells what the graph is of.
func (p *Page) Derived(g derive.Any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := g.Stats().Graph
	p.graphs = slices.DeleteFunc(p.graphs, func(of derive.Any) bool { return of.Stats().Graph == name })
	p.graphs = append(p.graphs, g)
}

// graphsNow returns the graphs of this moment.
func (p *Page) graphsNow() []derive.Any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.graphs)
}

// DerivedPage has the graphs, and the entry that was asked for.
type DerivedPage struct {
	Graphs []GraphRow `json:"graphs"`
	Entry  *EntryRow  `json:"entry,omitempty"`
}

// GraphRow is a graph.
type GraphRow struct {
	Name    string `json:"name"`
	Updates uint64 `json:"updates"`
	// ImpureTotal counts what an audit has found, and Impure are the last findings.
	ImpureTotal uint64    `json:"impureTotal,omitempty"`
	Impure      []string  `json:"impure,omitempty"`
	Nodes       []NodeRow `json:"nodes"`
	Element     string    `json:"-"`
}

// NodeRow is a node of a graph.
type NodeRow struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Entries int    `json:"entries"`
	Invalid int    `json:"invalid,omitempty"`
	// Example is why one of the entries is invalid.
	Example string `json:"example,omitempty"`
	// Runs of its functions, and Equal those that gave what was there; then those of the last
	// Update.
	Runs      uint64 `json:"runs"`
	Equal     uint64 `json:"equal"`
	LastRuns  int    `json:"lastRuns"`
	LastEqual int    `json:"lastEqual"`
	// EqualBecause is why one of the last runs for nothing has run.
	EqualBecause string `json:"equalBecause,omitempty"`
	// Seconds that the node has taken in all, and in the last Update.
	Seconds     float64 `json:"seconds"`
	LastSeconds float64 `json:"lastSeconds"`
}

// EntryRow is what a graph knows of one entry.
type EntryRow struct {
	Graph string `json:"graph"`
	Node  string `json:"node"`
	Key   string `json:"key,omitempty"`
	// Busy: an Update is running, so nothing is known now. Found: there is such an entry.
	Busy  bool `json:"busy,omitempty"`
	Found bool `json:"found"`
	// Error is why the entry is invalid.
	Error string `json:"error,omitempty"`
	// LookedUp is what its function looked up when it ran last, and Because why it ran, in the
	// Update of the number Ran. They are empty for an entry without a function.
	LookedUp []string `json:"lookedUp,omitempty"`
	Because  string   `json:"because,omitempty"`
	Ran      uint64   `json:"ran,omitempty"`
	// AskedBy are entries that have looked this one up.
	AskedBy []string `json:"askedBy,omitempty"`
}

func derivedData(p *Page, s *state, ask url.Values) any {
	to := DerivedPage{Graphs: []GraphRow{}}
	for _, of := range s.graphs {
		to.Graphs = append(to.Graphs, p.graphRow(of))
	}
	to.Graphs = cut(to.Graphs)
	if node := ask.Get("node"); node != "" {
		entry := EntryRow{Graph: ask.Get("graph"), Node: node, Key: ask.Get("key")}
		for _, g := range p.graphsNow() {
			if g.Stats().Graph == entry.Graph {
				p.explain(g, &entry)
			}
		}
		to.Entry = &entry
	}
	return to
}

func (p *Page) graphRow(of derive.Stats) GraphRow {
	row := GraphRow{
		Name: of.Graph, Updates: of.Updates, ImpureTotal: of.ImpureTotal, Impure: p.textsOf(of.Impure),
		Nodes: []NodeRow{}, Element: graphID(of.Graph),
	}
	for _, n := range cut(of.Nodes) {
		node := NodeRow{
			Name: n.Name, Kind: n.Kind, Entries: n.Entries, Invalid: n.Invalid,
			Runs: n.Runs, Equal: n.Equal, LastRuns: n.LastRuns, LastEqual: n.LastEqual, EqualBecause: p.causeOf(n.EqualBecause),
			Seconds: n.Time.Seconds(), LastSeconds: n.LastTime.Seconds(),
		}
		if n.Example != nil {
			node.Example = p.text(n.Example.Error())
		}
		row.Nodes = append(row.Nodes, node)
	}
	return row
}

func (p *Page) explain(g derive.Any, to *EntryRow) {
	x := g.Explain(to.Node, to.Key)
	to.Busy, to.Found, to.Ran = x.Busy, x.Found, x.Ran
	if x.Err != nil {
		to.Error = p.text(x.Err.Error())
	}
	to.Because, to.LookedUp, to.AskedBy = p.causeOf(x.Because), p.textsOf(x.LookedUp), p.textsOf(x.AskedBy)
}

// textsOf is [Page.text] for names of entries: a key may be made of what nobody may see.
func (p *Page) textsOf(names []string) (all []string) {
	for _, name := range names {
		all = append(all, p.text(name))
	}
	return slices.Compact(all)
}

// wholeOf begins the name of a whole collection as a cause.
const wholeOf = "all of "

// causeOf is [Page.text] for what made an entry run. A whole collection has no key.
func (p *Page) causeOf(text string) string {
	if strings.HasPrefix(text, wholeOf) || text == causeNew {
		return text
	}
	return p.text(text)
}

// causeNew is what package derive says of an entry that has run once.
const causeNew = "it is new"

func graphID(name string) string { return url.PathEscape("graph-" + name) }
