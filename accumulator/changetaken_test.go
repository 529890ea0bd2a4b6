package accumulator

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG1AChangeThatIsReplacedWhileItIsTakenIsNotShown replaces two queries, and one of them again
// while an Update takes their first batches. The other one waits for the newest then.
func TestG1AChangeThatIsReplacedWhileItIsTakenIsNotShown(t *testing.T) {
	var between func()
	var takes atomic.Int32
	config := stream.Config{Points: func(m stream.Moment) {
		if m.Point == stream.AtTake && takes.Add(-1) == 0 {
			between()
		}
	}}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a1"))
		s.Create("bs", sim.Thing("b1"))
		s.Create("cs", sim.Thing("c1"))
		s.Create("ds", sim.Thing("d1"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		require.True(t, signalled(a))
		var snap two
		update(t, a, &snap)
		require.NoError(t, a.Replace(t.Context(), sim.Query("A", "cs"), sim.Query("B", "cs")))
		require.True(t, signalled(a))
		forbid(s, "ds")
		between = func() { assert.NoError(t, a.Replace(context.Background(), sim.Query("B", "ds"))) }
		takes.Store(2) // those of the successors come first
		assert.False(t, update(t, a, &snap).Changed)
		assert.Equal(t, []string{"a1"}, sim.Names(snap.A))
		assert.False(t, update(t, a, &snap).Changed)
		s.Failing(nil)
		sim.After(60 * second)
		assert.ElementsMatch(t, []string{"-a1", "+c1", "-b1", "+d1"}, told(update(t, a, &snap)))
	})
}
