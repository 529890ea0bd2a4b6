package traffic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// leads waits until a process of the world leads, and returns which.
func (w *world) leads(than string) (holder string) {
	w.Helper()
	w.eventually(func() bool {
		lease := &coordinationv1.Lease{}
		lease.APIVersion, lease.Kind, lease.Namespace, lease.Name = "coordination.k8s.io/v1", "Lease", w.namespace, "gateway"
		if w.client.Get(w.Context(), lease, lease) != nil || lease.Spec.HolderIdentity == nil {
			return false
		}
		holder = *lease.Spec.HolderIdentity
		return holder != "" && holder != than
	}, "somebody else leads")
	return holder
}

// two starts two gateways. The first one leads.
func (w *world) two() (leader, follower *gateway, holder string) {
	w.Helper()
	leader = w.gateway().serve()
	holder = w.leads("")
	return leader, w.gateway().serve(), holder
}

func TestNoRequestFailsWhenTheLeaderStops(t *testing.T) {
	w := newWorld(t)
	a := w.app()
	leader, follower, holder := w.two()
	l := w.load(a.routes, leader, follower)
	l.targets[0].leave() // as a load balancer does with a pod that terminates
	leader.stop()
	w.makeBad()
	w.leads(holder)
	w.seesBad()
	l.halt()
}

func TestNoRequestFailsWhenTheLeaderIsKilled(t *testing.T) {
	w := newWorld(t)
	a := w.app()
	leader, follower, holder := w.two()
	l := w.load(a.routes, leader, follower)
	leader.kill() // its nginx serves on
	w.makeBad()
	w.leads(holder)
	w.seesBad()
	leader.serve()
	l.halt()
}

func TestNoRequestFailsWhenTheGatewayIsKilledAndNginxIsAdopted(t *testing.T) {
	w := newWorld(t)
	a := w.app()
	g := w.gateway().serve()
	l := w.load(a.routes, g)
	w.makeBad()
	w.seesBad()
	w.configures(g) // what came before is in the configuration: no reload is to come
	g.kill()
	w.settled(g) // and none is under way
	before := g.processes()
	l.reach(perSecond) // nginx serves on
	g.serve()
	assert.Zero(t, g.metric("nginx_starts_total"))
	assert.Zero(t, g.metric("nginx_reloads_total"))
	assert.Equal(t, before, g.processes(), "of nginx")
	w.serves(a.services[0])
	assert.Zero(t, g.metric("nginx_reloads_total"))
	l.halt()
}

// settled waits until nginx' last workers are all that there are. Nobody asks for reloads any more.
func (w *world) settled(g *gateway) {
	w.Helper()
	last, since := "", time.Now()
	w.eventually(func() bool {
		if now := g.processes(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second
	}, "nginx settles")
}

// configures adds a path, and waits until it serves. All that the gateway has known before serves
// then, too. Endpoints do not show that: they serve before the rest of a configuration.
func (w *world) configures(g *gateway) {
	w.Helper()
	w.create(ingress("last", "one.test", to{"/last", "b"}))
	last, web := healthy{"http://one.test/last", "b"}, w.web(g.address, anew)
	w.eventually(func() bool { return last.wrong(web) == nil }, "the last path serves")
}

// serves adds an endpoint, and waits until it serves.
func (w *world) serves(s *service) {
	w.Helper()
	next := w.pod(s.name)
	s.add(next)
	s.write()
	w.eventually(func() bool { return next.served.Load() > 0 }, "a new endpoint serves")
}

func TestNoRequestFailsWhileTheAPIServerIsAwayForThirtySeconds(t *testing.T) {
	t.Parallel()
	w := worldIn(t, apiserver.StartAPIServer(t, apiserver.WithCRDs(crds)))
	a := w.app()
	g := w.gateway().serve()
	l := w.load(a.routes, g)
	w.makeBad()
	require.NoError(t, w.cluster.Server().Kill())
	begin := time.Now()
	w.eventually(func() bool { return time.Since(begin) > 30*time.Second }, "the outage")
	assert.True(t, g.ready(), "an outage takes no gateway out of service")
	require.NoError(t, w.cluster.Server().Start())
	w.seesBad()
	w.serves(a.services[0])
	l.halt()
}
