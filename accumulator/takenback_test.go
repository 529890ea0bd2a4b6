package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/suite/sim"
)

// takenBack runs a test on two unions. The first one has given its first batch, which was taken
// back since the other had none. Now that has one, but of the first one's streams, one is late.
func takenBack(t *testing.T, f func(t *testing.T, s *sim.Server, a *Accumulator)) {
	var blocked stream.ID // once the test knows it
	listing := make(chan struct{})
	points := func(m stream.Moment) {
		if m.Point == stream.AtList && m.Stream == blocked {
			<-listing
		}
	}
	sim.Bubble(t, stream.Config{PendingMax: 2, Points: points}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		listing = make(chan struct{})
		other := query.Query{Name: "B", Kind: "as", Resolve: sim.Query("B", "as").Resolve, AnyOf: []stream.Selection{
			{Labels: labels.SelectorFromSet(labels.Set{"in": "yes"})},
			{Labels: labels.SelectorFromSet(labels.Set{"in": "never"})},
		}}
		a := watching(t, streams, collect.Options{}, unionOfAll(), other)
		require.True(t, signalled(a))
		never := a.collector.Fields()[1].Query.Listeners()[1]
		blocked = never.Stream()

		s.Late(time.Hour)
		o := sim.NewClient(s, streams)
		for _, name := range []string{"1", "2", "3"} {
			o.Put("as", sim.Thing(name, "in", "no"), 0)
		}
		synctest.Wait()
		require.Equal(t, stream.Relisting, never.State().Phase)
		s.Mu.Lock()
		s.Delay, s.DelayOf = nil, func(w *sim.Watch) time.Duration {
			if w.Filter.Labels.Matches(labels.Set{"in": "no"}) {
				return time.Hour
			}
			return 0
		}
		s.Mu.Unlock()
		s.Create("as", sim.Thing("4", "in", "yes"))
		synctest.Wait() // one stream of the first union is newer than the other
		require.False(t, update(t, a, &two{}).Complete)
		close(listing)
		synctest.Wait()
		f(t, s, a)
	})
}

func TestG1AUnionWhoseFirstBatchWasTakenBackIsWholeInTheFirstSnapshot(t *testing.T) {
	takenBack(t, func(t *testing.T, _ *sim.Server, a *Accumulator) {
		var snap two
		require.False(t, update(t, a, &snap).Complete, "one stream is late")
		assert.Nil(t, snap.A)
		sim.After(second)
		require.True(t, signalled(a))
		require.True(t, update(t, a, &snap).Complete)
		assert.Equal(t, []string{"1", "2", "3", "4"}, sim.Names(snap.A))
		assert.Equal(t, []string{"4"}, sim.Names(snap.B))
	})
}

// The version that its streams have to reach stays the same, however often it is asked for.
func TestG1AUnionWhoseFirstBatchWasTakenBackIsCompleteThoughItIsBusyAndAskedAgainAndAgain(t *testing.T) {
	takenBack(t, func(t *testing.T, s *sim.Server, a *Accumulator) {
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return 200 * time.Millisecond }
		s.Mu.Unlock()
		var snap two
		for i := 0; !update(t, a, &snap).Complete; i++ {
			require.Less(t, i, 20)
			s.Touch("as", "4", i)
			sim.After(60 * time.Millisecond)
		}
		assert.Equal(t, []string{"1", "2", "3", "4"}, sim.Names(snap.A))
	})
}
