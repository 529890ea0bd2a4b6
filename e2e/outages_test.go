package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/e2e/cluster"
)

// What is shown stays while the server is away. What was written meanwhile is there afterwards,
// with one list at most: a server that starts has no history from which to resume a watch.
func TestG5AServerThatGoesAwayAndComesBackTakesNothingBack(t *testing.T) {
	t.Parallel()
	c := breakable(t, "request-timeout=2s") // this also bounds a graceful stop
	second, err := c.AddServer()
	require.NoError(t, err)
	all := watching(t, at(c, c.Server()), at(c, second), nil)
	round := 0
	for _, failure := range []struct {
		name string
		end  func(*cluster.Server) error
	}{
		{"killed", (*cluster.Server).Kill},
		{"stopped", (*cluster.Server).Stop},
	} {
		name, end := failure.name, failure.end
		before := map[*follower]int{}
		all.each(func(f *follower) { before[f] = f.whole() })
		require.NoError(t, end(c.Server()), name)
		all.each((*follower).down)
		round++
		all.change(round)
		require.NoError(t, c.Server().Start(), name)
		round++
		all.change(round)
		all.each(func(f *follower) {
			f.arrive()
			assert.LessOrEqual(t, f.whole()-before[f], 1, name)
			f.quiet()
		})
	}
	etcdKilled(t, c, all, round+1)
}

// etcdKilled ends etcd under the API servers. They keep their watches open and do not notice. A
// write fails and leaves no trace. When etcd is back, everything continues without a list.
func etcdKilled(t *testing.T, c *cluster.Cluster, all together, round int) {
	before := map[*follower]int{}
	all.each(func(f *follower) { before[f] = f.whole() })
	require.NoError(t, c.KillEtcd())
	all.each(func(f *follower) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		require.Error(t, f.client.Create(ctx, object(f.kind, f.ns, "failed", nil), nil))
		updates := f.updates
		f.update()
		assert.Equal(t, updates, f.updates, "G4, G8: nothing has changed")
		assert.NoError(t, f.acc.Ready())
	})
	require.NoError(t, c.StartEtcd())
	all.each(func(f *follower) {
		require.Eventually(t, func() bool {
			_, err := f.others.Resource(f.kind).Namespace(f.ns).List(t.Context(), metav1.ListOptions{})
			return err == nil
		}, patience, 10*time.Millisecond)
	})
	all.change(round)
	all.each(func(f *follower) {
		f.arrive()
		assert.Equal(t, before[f], f.whole(), "no list")
		f.quiet()
	})
}
