package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/e2e/cluster"
)

// TestG5AServerThatGoesAwayAndComesBack: what is shown stays while it is away, and what was written meanwhile is there
// afterwards, by one list at the most: a server that starts has no past to resume a watch from.
func TestG5AServerThatGoesAwayAndComesBackTakesNothingBack(t *testing.T) {
	t.Parallel()
	c := breakable(t, "request-timeout=2s") // which bounds a graceful stop, too
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
}
