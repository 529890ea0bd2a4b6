package prometheus

import (
	"maps"
	"slices"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kates-go/kates/derive"
)

// graph is a graph whose figures are metrics.
type graph struct {
	derive.Any
	source source
}

// Derived has the metrics tell of a graph of package derive. A graph takes the place of one of the
// same name; a counter does not fall for that.
func (m *Metrics) Derived(g derive.Any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.graphs[g.Stats().Graph] = &graph{Any: g}
}

// graphsNow returns the graphs by name.
func (m *Metrics) graphsNow() (all []*graph) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.graphs)) {
		all = append(all, m.graphs[name])
	}
	return all
}

// gatherGraphs returns what graphs say now. The mutex gathering guards it.
func (m *Metrics) gatherGraphs() []prom.Metric {
	g := m.derived.gathering()
	for _, of := range m.graphsNow() {
		g.begin(&of.source)
		g.readGraph(of.Stats())
	}
	return g.end()
}

// readGraph adds up the nodes of a graph.
func (g *gathering) readGraph(of derive.Stats) {
	graph := g.observed.names.graphs.admit(of.Graph)
	g.count(derivedUpdates, 0, of.Graph, of.Updates, graph)
	g.count(derivedImpure, 0, of.Graph, of.ImpureTotal, graph)
	for _, n := range of.Nodes {
		node := g.observed.names.nodes.admit(n.Name)
		g.add(derivedEntries, float64(n.Entries), graph, node)
		g.add(derivedInvalid, float64(n.Invalid), graph, node)
		g.count(derivedRuns, 0, n.Name, n.Runs, graph, node)
		g.count(derivedEqual, 0, n.Name, n.Equal, graph, node)
		g.countTo(derivedSeconds, 0, n.Name, n.Time.Seconds(), graph, node)
	}
}
