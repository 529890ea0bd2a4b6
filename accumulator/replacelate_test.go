package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// lateWatches makes events come a minute late in watches whose selector has a label.
func lateWatches(s *sim.Server, label string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.DelayOf = func(w *sim.Watch) time.Duration {
		if w.Filter.Labels.Matches(labels.Set{label: "yes"}) {
			return time.Minute
		}
		return 0
	}
}

func TestG5AStreamThatTakesAnothersPlaceTakesNothingBackThoughItIsLate(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "l", "yes", "r", "yes"))
		q := sim.Query("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"l": "yes"})
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "r")
		s.Mu.Lock()
		// Its list is as old when it comes. A probe is a list too, and waits for 30 s: chance
		// would decide between two timers at one moment.
		s.ListAnswer = func(string) time.Duration { return 29 * time.Second }
		s.Mu.Unlock()
		q.Labels = labels.SelectorFromSet(labels.Set{"r": "yes"})
		require.NoError(t, a.Replace(t.Context(), q))
		shown := snap.A[0].GetResourceVersion()
		steps := map[int]func(){
			5:  func() { s.Touch("as", "x", 1) },
			10: func() { s.Relabel("x", "l", "yes") },
			15: func() { s.Relabel("x", "l", "yes", "r", "yes") },
			20: func() { s.Touch("as", "x", 2) },
		}
		for second := range 600 {
			if step := steps[second]; step != nil {
				step()
			}
			sim.After(time.Second)
			synctest.Wait()
			update(t, a, &snap)
			require.Equal(t, []string{"x"}, sim.Names(snap.A), "after %d s", second)
			require.False(t, coherence.Newer(shown, snap.A[0].GetResourceVersion()), "after %d s", second)
			shown = snap.A[0].GetResourceVersion()
		}
		s.Touch("as", "x", 3)
		sim.After(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
	})
}

func TestAKindThatIsReplacedByAnotherIsNotComparedWithIt(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("bs", sim.Thing("x"))
		s.Create("as", sim.Thing("x")) // newer, and of another kind
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		require.NoError(t, a.Replace(t.Context(), sim.Query("A", "bs")))
		synctest.Wait()
		assert.Equal(t, []string{"-x", "+x"}, told(update(t, a, &snap)))
		s.Touch("bs", "x", 1)
		synctest.Wait()
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
	})
}

func TestG8WhatHasJoinedTheNewQueryStaysThoughItsFirstListIsOlder(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "l", "yes"))
		s.Create("as", sim.Thing("y", "l", "yes"))
		q := sim.Query("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"l": "yes"})
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "r")
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return 29 * time.Second }
		s.Mu.Unlock()
		q.Labels = labels.SelectorFromSet(labels.Set{"r": "yes"})
		require.NoError(t, a.Replace(t.Context(), q))
		sim.After(5 * time.Second)
		s.Relabel("x", "l", "yes", "r", "yes")
		var all []string
		for second := range 300 {
			sim.After(time.Second)
			synctest.Wait()
			all = append(all, told(update(t, a, &snap))...)
			require.Contains(t, sim.Names(snap.A), "x", "after %d s", second)
		}
		assert.Equal(t, []string{"~x", "-y"}, all)
	})
}
