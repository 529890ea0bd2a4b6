package accumulator

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/suite/sim"
)

func TestG5AUnionNeitherTearsNorResurrectsThoughOneWatchIsLate(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		q := sim.Query("A", "as")
		l := labels.SelectorFromSet(labels.Set{"l": "yes"})
		r := labels.SelectorFromSet(labels.Set{"r": "yes"})
		q.AnyOf = []stream.Selection{{Labels: l}, {Labels: r}}
		s.Create("as", sim.Thing("x", "l", "yes"))
		s.Create("as", sim.Thing("both", "l", "yes", "r", "yes"))
		s.Create("as", sim.Thing("none"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+both", "+x"}, told(update(t, a, &snap)))

		s.Mu.Lock()
		s.DelayOf = func(w *sim.Watch) time.Duration {
			if w.Filter.Labels.Matches(labels.Set{"r": "yes"}) {
				return time.Minute
			}
			return 0
		}
		s.Mu.Unlock()
		s.Relabel("x", "r", "yes") // it moves from one to the other
		synctest.Wait()
		assert.Empty(t, told(update(t, a, &snap)), "it never was out of the query")
		assert.Equal(t, []string{"both", "x"}, sim.Names(snap.A))

		s.Relabel("both", "l", "yes", "r", "yes", "n", "2")
		synctest.Wait()
		assert.Equal(t, []string{"~both"}, told(update(t, a, &snap)))
		s.Remove("as", "both")
		synctest.Wait()
		assert.Empty(t, told(update(t, a, &snap)), "the other watch still has it, older than it was shown")

		sim.After(time.Second)
		synctest.Wait()
		sim.After(10 * time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, sim.Names(snap.A))
		assert.Equal(t, "yes", snap.A[0].GetLabels()["r"])
	})
}

func TestG4OwnWritesInAUnionAreShownAtOnce(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		q := sim.Query("A", "as")
		q.AnyOf = []stream.Selection{
			{Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{"r": "yes"})},
		}
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		s.Late(time.Hour)
		o := sim.NewClient(s, streams)
		var snap one
		o.Put("as", sim.Thing("x", "l", "yes"), 0)
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x", "r", "yes"), 0)
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x"), 0)
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("x", "r", "yes", "l", "yes"), 0)
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		require.True(t, o.Delete("as", "x", 0, true))
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		sim.After(3 * time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG5ADeletionThatOneWatchOfAUnionIsTooQuietToConfirmIsShownSoon(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		q := sim.Query("A", "as")
		q.AnyOf = []stream.Selection{
			{Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{"r": "yes"})},
		}
		s.Create("as", sim.Thing("x", "l", "yes"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.Remove("as", "x")
		signalled(a)
		assert.Empty(t, told(update(t, a, &snap)), "the other watch may have it")
		sim.After(time.Second) // no bookmark comes: the server is asked
		assert.True(t, signalled(a))
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		assert.Empty(t, snap.A)
	})
}

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

// union returns a query that selects by either of two labels.
func union() query.Query {
	q := sim.Query("A", "as")
	q.AnyOf = []stream.Selection{
		{Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{"r": "yes"})},
	}
	return q
}

func TestG8AnObjectThatMovesThereAndBackIsNeverOutOfAUnionThoughOneWatchIsLate(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.Thing("x", "l", "yes"))
		a := watching(t, streams, collect.Options{}, union())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "l")
		steps := map[int]func(){
			10: func() { s.Relabel("x", "r", "yes") },
			20: func() { s.Relabel("x", "l", "yes") },
		}
		for second := range 600 {
			if step := steps[second]; step != nil {
				step()
			}
			sim.After(time.Second)
			synctest.Wait()
			update(t, a, &snap)
			require.Equal(t, []string{"x"}, sim.Names(snap.A), "after %d s", second)
		}
		assert.Equal(t, map[string]string{"l": "yes"}, snap.A[0].GetLabels())
	})
}

func TestG5WhatLeftAUnionDoesNotComeBackAsItWasThoughOneWatchIsLate(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.Thing("x", "l", "yes"))
		s.Create("as", sim.Thing("y", "r", "yes"))
		a := watching(t, streams, collect.Options{}, union())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "r")
		steps := map[int]func(){
			10: func() { s.Relabel("x", "l", "yes", "r", "yes") },
			20: func() { s.Relabel("x", "l", "yes") },
			30: func() { s.Relabel("x", "l", "yes", "r", "yes") },
			35: func() { s.Touch("as", "y", 1) }, // the late watch is not known to be complete
			40: func() { s.Remove("as", "x") },
		}
		var all []string
		for second := range 600 {
			if step := steps[second]; step != nil {
				step()
			}
			sim.After(time.Second)
			synctest.Wait()
			all = append(all, told(update(t, a, &snap))...)
		}
		assert.Equal(t, []string{"~x", "~x", "~x", "-x"}, slices.DeleteFunc(all, func(d string) bool { return d == "~y" }))
	})
}

func TestG5AStreamThatTakesAnothersPlaceTakesNothingBackThoughItIsLate(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
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
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
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

func TestG5AUnionThatIsPutTogetherAnewTakesNothingBackThoughOneWatchIsLate(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.Thing("x", "l", "yes", "r", "yes"))
		a := watching(t, streams, collect.Options{}, union())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.Mu.Lock()
		s.DelayOf = func(w *sim.Watch) time.Duration {
			if w.Filter.Labels.Matches(labels.Set{"r": "yes"}) {
				return time.Minute
			}
			return 0
		}
		s.Mu.Unlock()
		s.Relabel("x", "l", "yes", "r", "yes", "n", "2")
		synctest.Wait()
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		s.Remove("as", "x")
		synctest.Wait()
		listener(a, 0).Stage().Restart() // as after a give-up
		assert.Empty(t, told(update(t, a, &snap)), "the late watch has an older version")
		sim.After(10 * time.Minute)
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
	})
}

func TestG8WhatHasJoinedTheNewQueryStaysThoughItsFirstListIsOlder(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
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

func TestG1TheFirstSnapshotOfAUnionHasWhatIsOnItsWayFromOneWatchToTheOther(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		l, r := labels.SelectorFromSet(labels.Set{"l": "yes"}), labels.SelectorFromSet(labels.Set{"r": "yes"})
		left, right := sim.Query("A", "as"), sim.Query("B", "as")
		left.Labels, right.Labels = l, r
		require.True(t, signalled(watching(t, streams, collect.Options{}, left, right)))
		s.Create("as", sim.Thing("x", "l", "yes"))
		synctest.Wait()
		lateWatches(s, "r")
		s.Relabel("x", "r", "yes")
		synctest.Wait() // one watch has released it, and the other has not brought it
		a := watching(t, streams, collect.Options{}, union())
		assert.False(t, signalled(a))
		assert.Error(t, a.Ready())
		sim.After(2 * time.Minute)
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
	})
}

func TestG4WhatComesAndGoesUnreadInAUnionIsShownUntilItIsKnownWhere(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		a := watching(t, streams, collect.Options{Pace: collect.Pace{Interval: 10 * second}}, union())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "r")
		sim.NewClient(s, streams).Put("as", sim.Thing("x", "l", "yes"), 0)
		s.Relabel("x", "r", "yes") // another writer moves it to the late watch
		synctest.Wait()
		assert.False(t, signalled(a), "not before its time")
		sim.After(10 * second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		sim.After(5 * time.Minute)
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		assert.Equal(t, "yes", snap.A[0].GetLabels()["r"])
		assert.Zero(t, a.collector.Fields()[0].Query.Waits())
	})
}

func TestG5AReaderOfAUnionNeverGoesBackThoughOneWatchIsLate(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		key := stream.Key{Namespace: "ns", Name: "x"}
		s.Create("as", sim.Thing("x", "l", "yes", "r", "yes"))
		r, err := Open(t.Context(), streams, union(), collect.Options{})
		require.NoError(t, err)
		require.NoError(t, r.Wait(t.Context()))
		lateWatches(s, "r")
		s.Relabel("x", "l", "yes", "r", "yes", "n", "2")
		synctest.Wait()
		second := r.Get(key)
		assert.Equal(t, "2", second.GetLabels()["n"])
		s.Relabel("x", "r", "yes", "n", "3") // it leaves the watch that is not late
		synctest.Wait()
		assert.Same(t, second, r.Get(key), "the late one has it, as it was before that")
		assert.Len(t, r.List("", nil), 1)
		sim.After(5 * time.Minute)
		assert.Equal(t, "3", r.Get(key).GetLabels()["n"])
		s.Remove("as", "x")
		sim.After(5 * time.Minute)
		r.Get(key) // no bookmark comes: the server is asked
		sim.After(time.Second)
		assert.Nil(t, r.Get(key))
		assert.Empty(t, r.List("", nil))
	})
}
