package accumulator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG5AQueryThatReplacesAnotherIsAsNewAsAnOwnWriteThatWasShownAndThenGivenUp: the streams learn
// of an own write one after the other. The first one shows it, and gives it up when more follow.
// The second one is the new query's, and does not know of it yet.
func TestG5AQueryThatReplacesAnotherIsAsNewAsAnOwnWriteThatWasShownAndThenGivenUp(t *testing.T) {
	var commits []func()
	points := func(m stream.Moment) {
		if m.Point == stream.AtCommit && len(commits) > 0 {
			do := commits[0]
			commits = commits[1:]
			do()
		}
	}
	sim.Bubble(t, stream.Config{PendingMax: 2, Points: points}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		wide, narrow := over("A", "as"), over("A", "as", "ns")
		other := map[*Accumulator]query.Query{}
		for _, q := range [][2]query.Query{{wide, narrow}, {narrow, wide}} {
			a := watching(t, streams, collect.Options{}, q[0])
			require.True(t, signalled(a))
			require.Equal(t, []string{"+x"}, told(update(t, a, &one{})))
			other[a] = q[1]
		}
		s.Late(time.Hour)
		s.Mu.Lock()
		s.ListDelay = func(string) time.Duration { return time.Minute }
		s.Mu.Unlock()
		o := sim.NewClient(s, streams)
		ofX := func(a *Accumulator) string {
			var snap one
			update(t, a, &snap)
			for _, o := range snap.A {
				if o.GetName() == "x" {
					return o.GetLabels()["written"]
				}
			}
			return "nothing"
		}
		before, replaced := func() {}, 0
		between := func() {
			for a, by := range other {
				if ofX(a) != "yes" {
					continue // the stream of its query does not know of the write yet
				}
				o.Put("as", sim.Thing("y"), 0)
				o.Put("as", sim.Thing("z"), 0)
				require.True(t, givenUp(a))
				require.NoError(t, a.Replace(t.Context(), by))
				for range 10 {
					sim.After(10 * second)
					assert.Equal(t, "yes", ofX(a), "what was shown is not taken back")
				}
				replaced++
			}
		}
		commits = []func(){before, between}
		o.Put("as", sim.Thing("x", "written", "yes"), 0)
		assert.Equal(t, 1, replaced, "one stream knew of it")
		sim.After(2 * time.Hour)
		for a := range other {
			assert.Equal(t, "yes", ofX(a))
		}
	})
}
