package prometheus

import (
	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kates-go/kates/kates/inspect"
)

// cluster is what the clients of one name have in common: their series. The mutex mu of Metrics
// guards sources, and gathering guards totals.
type cluster struct {
	name     string
	sources  map[*source]struct{}
	observed *observed
	totals   map[series]float64 // of counters that are read from reports
}

// source is an open client. The mutex gathering of Metrics guards seen.
type source struct {
	report func() *inspect.Report
	seen   map[counted]float64 // the counts in the last report
}

// series is one series of a metric, in a cluster.
type series struct {
	*metric
	values [maxLabels]string
}

// counted is one of the watches or streams that a series of a counter is the sum of.
type counted struct {
	series
	id    int64
	query string // of the watch
}

func newCluster(name string) *cluster {
	return &cluster{name: name, sources: make(map[*source]struct{}), observed: newObserved(name)}
}

// gather returns what the reports of clients say now.
func (c *cluster) gather(sources []*source) (found []prom.Metric) {
	g := c.gathering()
	g.add(clients, float64(len(sources)))
	for _, s := range sources {
		g.begin(s)
		g.read(s.report())
	}
	return g.end()
}

func (c *cluster) gathering() *gathering {
	return &gathering{cluster: c, gauges: make(map[series]float64), totals: make(map[series]float64)}
}

// begin begins to read a source.
func (g *gathering) begin(s *source) {
	g.source, g.seen = s, s.seen
	s.seen = make(map[counted]float64)
}

// end returns what was read.
func (g *gathering) end() (found []prom.Metric) {
	c := g.cluster
	c.totals = g.totals
	for s, v := range g.gauges {
		found = append(found, s.sample(prom.GaugeValue, c.name, v))
	}
	for s, v := range g.totals {
		found = append(found, s.sample(prom.CounterValue, c.name, v))
	}
	return found
}

func (s series) sample(kind prom.ValueType, cluster string, v float64) prom.Metric {
	values := append([]string{cluster}, s.values[:len(s.labels)]...)
	return prom.MustNewConstMetric(s.desc, kind, v, values...)
}

// gathering adds up the reports of a cluster's clients.
type gathering struct {
	*cluster
	source *source             // whose report is read
	seen   map[counted]float64 // the counts in its last report
	gauges map[series]float64
	totals map[series]float64
}

func seriesOf(m *metric, values []string) (s series) {
	if len(values) != len(m.labels) {
		panic(m.name + " has other labels")
	}
	s.metric = m
	copy(s.values[:], values)
	return s
}

// add adds to a gauge.
func (g *gathering) add(m *metric, v float64, values ...string) {
	g.gauges[seriesOf(m, values)] += v
}

// most raises a gauge to a value.
func (g *gathering) most(m *metric, v float64, values ...string) {
	s := seriesOf(m, values)
	g.gauges[s] = max(g.gauges[s], v)
}

// count reads a counter of a watch, of one of its queries, or of a stream. The series has what it
// had when it was collected last, and what has come since. So it does not fall when one of several
// watches has ended. It ends with the last of them, and if there is another one later, it begins
// at 0. A query that was replaced has begun at 0, too.
func (g *gathering) count(m *metric, id int64, query string, n uint64, values ...string) {
	g.countTo(m, id, query, float64(n), values...)
}

// countTo is [gathering.count] for seconds.
func (g *gathering) countTo(m *metric, id int64, query string, n float64, values ...string) {
	s := seriesOf(m, values)
	if _, ok := g.totals[s]; !ok {
		g.totals[s] = g.cluster.totals[s]
	}
	c := counted{s, id, query}
	g.source.seen[c] = n
	if before := g.seen[c]; n >= before {
		n -= before
	}
	g.totals[s] += n
}
