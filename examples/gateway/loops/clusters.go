package loops

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// elsewhere is a snapshot of the other clusters.
type elsewhere struct {
	Slices  []fleet.Object[*discoveryv1.EndpointSlice]
	Missing []fleet.Missing
}

// remote has the endpoints of the other clusters.
type remote struct {
	known chan struct{} // closed when there is a first snapshot
	first sync.Once

	mu      sync.Mutex
	slices  []fleet.Object[*discoveryv1.EndpointSlice]
	leftOut bool // endpoints of slices are left out
}

func (r *remote) init() {
	r.known = make(chan struct{})
}

func (r *remote) endpoints() []fleet.Object[*discoveryv1.EndpointSlice] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slices
}

// watchClusters follows the other clusters. One that does not answer keeps its endpoints.
func (g *Gateway) watchClusters(ctx context.Context) error {
	missing := map[string]string{}
	return fleet.Run(ctx, g.Clusters, func(_ context.Context, snap *elsewhere) error {
		if g.remote.take(snap, g.Translate.LeavesOut) {
			wake(g.wakes.report)
		}
		if g.Nginx.Pushes() {
			wake(g.wakes.push)
		} else {
			wake(g.wakes.configure)
		}
		missing = g.logMissing(snap, missing)
		return nil
	}, g.slices())
}

// slices is the query of EndpointSlices, in the namespaces of that of the home cluster.
func (g *Gateway) slices() kates.Query {
	for _, q := range g.Queries {
		if q.Name == "Slices" {
			return q
		}
	}
	return kates.Query{Name: "Slices"}
}

// take takes what the other clusters have. It reports whether reports are concerned: endpoints are
// left out, or were.
func (r *remote) take(snap *elsewhere, leavesOut func(*discoveryv1.EndpointSlice) bool) bool {
	leftOut := slices.ContainsFunc(snap.Slices, func(s fleet.Object[*discoveryv1.EndpointSlice]) bool { return leavesOut(s.Object) })
	r.mu.Lock()
	defer r.mu.Unlock()
	did := r.leftOut
	r.slices, r.leftOut = snap.Slices, leftOut
	r.first.Do(func() { close(r.known) })
	return leftOut || did
}

// logMissing logs which clusters are missing that were not, and the other way round.
func (g *Gateway) logMissing(snap *elsewhere, before map[string]string) map[string]string {
	now := map[string]string{}
	for _, m := range snap.Missing {
		now[m.Cluster] = m.Err.Error()
		if _, known := before[m.Cluster]; known {
			continue
		}
		text := "a cluster does not answer: its endpoints are not served"
		if m.Shown {
			text = "a cluster does not answer: its last known endpoints are served on"
		}
		g.Logger.Warn(text, slog.String("cluster", m.Cluster), slog.String("error", m.Err.Error()))
	}
	for cluster := range before {
		if _, missing := now[cluster]; !missing {
			g.Logger.Info("a cluster answers again", slog.String("cluster", cluster))
		}
	}
	return now
}
