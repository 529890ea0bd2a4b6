package page

import (
	"fmt"
	"time"

	"github.com/kates-go/kates/kates/inspect"
)

// Names of the series in the history.
func clientSeries(client, what string) string { return "client\x00" + client + "\x00" + what }

func watchSeries(id int64, what string) string { return fmt.Sprintf("watch\x00%d\x00%s", id, what) }

func querySeries(watch int64, query, what string) string {
	return fmt.Sprintf("query\x00%d\x00%s\x00%s", watch, query, what)
}

func streamSeries(id int64, what string) string { return fmt.Sprintf("stream\x00%d\x00%s", id, what) }

func nodeSeries(graph, node, what string) string {
	return "node\x00" + graph + "\x00" + node + "\x00" + what
}

// takeSample adds a sample of all clients and graphs to the history.
func (p *Page) takeSample(now time.Time) {
	values := map[string]float64{}
	for _, m := range p.members() {
		sampleOf(m.name, m.report(), now, values)
	}
	for _, g := range p.graphsNow() {
		of := g.Stats()
		for _, n := range of.Nodes {
			values[nodeSeries(of.Graph, n.Name, "runs")] = float64(n.Runs)
			values[nodeSeries(of.Graph, n.Name, "equal")] = float64(n.Equal)
		}
	}
	p.history.add(now, values)
}

// sampleOf adds the values of one client.
func sampleOf(client string, r *inspect.Report, now time.Time, to map[string]float64) {
	var events, coalesced, snapshots, changes float64
	for _, w := range r.Watches {
		var in, away float64
		for _, q := range w.Queries {
			in, away = in+float64(q.Events), away+float64(q.Coalesced)
			to[querySeries(w.ID, q.Name, "events")] = float64(q.Events)
		}
		to[watchSeries(w.ID, "events")] = in
		to[watchSeries(w.ID, "coalesced")] = away
		to[watchSeries(w.ID, "snapshots")] = float64(w.Snapshots)
		to[watchSeries(w.ID, "changes")] = float64(w.Changes)
		events, coalesced = events+in, coalesced+away
		snapshots, changes = snapshots+float64(w.Snapshots), changes+float64(w.Changes)
	}
	for _, s := range r.Streams {
		to[streamSeries(s.ID, "events")] = float64(s.Events)
		to[streamSeries(s.ID, "lists")] = sum(s.Lists) - float64(s.Lists[inspect.ListAgain]) // these have failed
		to[streamSeries(s.ID, "idle")] = float64(s.Watches[inspect.WatchIdle])
		to[streamSeries(s.ID, "watches")] = sum(s.Watches)
		to[streamSeries(s.ID, "undecodable")] = float64(s.Undecodable)
		if !s.Heard.IsZero() {
			to[streamSeries(s.ID, "stale")] = max(0, now.Sub(s.Heard).Seconds())
		}
	}
	to[clientSeries(client, "events")] = events
	to[clientSeries(client, "coalesced")] = coalesced
	to[clientSeries(client, "snapshots")] = snapshots
	to[clientSeries(client, "changes")] = changes
}

func sum[K comparable](of map[K]uint64) (all float64) {
	for _, n := range of {
		all += float64(n)
	}
	return all
}
