package e2e

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/cluster"
)

// balancer sends connections to one of several API servers, instead of the one in the address.
type balancer struct {
	server atomic.Pointer[cluster.Server]
}

// config sends a client's connections through the balancer.
func (b *balancer) config(c *rest.Config) {
	dial := c.Dial
	c.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dial(ctx, network, b.server.Load().Address())
	}
}

// Three API servers share one etcd, and each has its own watch cache. A watch continues at the
// next server where it was, and nothing goes back, though that server may be behind: it was
// paused, and knows nothing of what was written meanwhile.
func TestG5AClientThatMovesBetweenServersTakesNothingBack(t *testing.T) {
	t.Parallel()
	c := breakable(t)
	servers := []*cluster.Server{c.Server()}
	for range 2 {
		s, err := c.AddServer()
		require.NoError(t, err)
		servers = append(servers, s)
	}
	// a server makes a cache, without a past, when the kind is first requested
	for _, s := range servers {
		others, err := dynamic.NewForConfig(at(c, s))
		require.NoError(t, err)
		for _, kind := range []schema.GroupVersionResource{configMaps, hosts} {
			_, err := others.Resource(kind).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
			require.NoError(t, err)
		}
	}
	var b balancer
	b.server.Store(servers[0])
	all := watching(t, c.Config, c.Config, b.config)
	before := map[*follower]int{}
	all.each(func(f *follower) { before[f] = f.whole() })
	for round := 1; round <= 6; round++ {
		here, next := servers[(round+2)%3], servers[round%3]
		require.NoError(t, next.Pause())
		all.each(func(f *follower) { f.writeTo(at(c, here)) })
		all.change(round)
		for name, f := range all {
			f.own(fmt.Sprintf("own-%d-%s", round, label(name)))
		}
		b.server.Store(next)
		all.each(func(f *follower) {
			f.network.Reset()
			f.update() // nothing goes back, and its own write stays
		})
		require.NoError(t, next.Resume())
		all.each((*follower).arrive)
	}
	all.each(func(f *follower) {
		assert.Equal(t, before[f], f.whole(), "a watch is resumed at another server: no list")
		assert.Zero(t, f.acc.Status().Queries[0].Restarts)
		f.quiet()
		assert.Zero(t, f.acc.Status().Queries[0].Pending)
	})
}
