package prometheus

import (
	"context"
	"maps"
	"slices"
	"sync"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// Metrics are the metrics of all clients that have it as an observer ([kates.WithObserver]). It is
// a [prom.Collector]: register it once. It is safe for concurrent use.
type Metrics struct {
	described *observed  // never filled: it describes the histograms
	derived   *cluster   // of no name, for the series of graphs
	gathering sync.Mutex // one Collect at a time, since counters go on where the last one was

	mu       sync.Mutex
	clusters map[string]*cluster // with an open client, by name
	graphs   map[string]*graph   // by name
}

var (
	_ kates.ClientObserver = (*Metrics)(nil)
	_ prom.Collector       = (*Metrics)(nil)
)

// New returns metrics without clients yet.
func New() *Metrics {
	return &Metrics{
		described: newObserved(""), derived: newCluster(""),
		clusters: make(map[string]*cluster), graphs: make(map[string]*graph),
	}
}

// ObserveClient is called by the constructors of clients.
func (m *Metrics) ObserveClient(c *kates.Client) (o kates.Observer, closed func()) {
	return m.add(c.ClusterName(), func() *inspect.Report { return inspect.Of(c) })
}

// add adds a client: what it does, and the observer that is told. remove is called once.
func (m *Metrics) add(name string, report func() *inspect.Report) (o kates.Observer, remove func()) {
	s, name := &source{report: report}, clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[name]
	if c == nil {
		c = newCluster(name)
		m.clusters[name] = c
	}
	c.sources[s] = struct{}{}
	return c.observed, func() { m.remove(c, s) }
}

// remove removes a client. With the last one, the cluster and all its series go.
func (m *Metrics) remove(c *cluster, s *source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(c.sources, s)
	if len(c.sources) == 0 && m.clusters[c.name] == c {
		delete(m.clusters, c.name)
	}
}

// Request is part of [kates.Observer]. It has no effect, and neither have the two below: the
// observers that ObserveClient returns are told instead.
func (m *Metrics) Request(ctx context.Context, _ kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	return ctx, nil
}

// Call is part of [kates.Observer].
func (m *Metrics) Call(ctx context.Context, _ kates.CallInfo) (context.Context, func(kates.CallResult)) {
	return ctx, nil
}

// Updated is part of [kates.Observer].
func (m *Metrics) Updated(kates.UpdateInfo) {}

// Describe is part of [prom.Collector].
func (m *Metrics) Describe(to chan<- *prom.Desc) {
	m.described.describe(to)
	for _, d := range all {
		if !m.described.has(d) {
			to <- d.desc
		}
	}
}

// Collect is part of [prom.Collector]. It asks each client for a report: see package inspect for
// what that costs.
func (m *Metrics) Collect(to chan<- prom.Metric) {
	type open struct {
		*cluster
		sources []*source
	}
	m.gathering.Lock()
	m.mu.Lock()
	var now []open
	for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
		c := m.clusters[name]
		now = append(now, open{c, slices.Collect(maps.Keys(c.sources))})
	}
	m.mu.Unlock()
	var found []prom.Metric
	for _, c := range now {
		found = append(found, c.gather(c.sources)...)
	}
	found = append(found, m.gatherGraphs()...)
	m.gathering.Unlock()
	for _, metric := range found {
		to <- metric
	}
	for _, c := range now {
		c.observed.collect(to)
	}
}
