package accumulator

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

func TestG5AUnionNeitherTearsNorResurrectsThoughOneWatchIsLate(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("A", "as")
		l := labels.SelectorFromSet(labels.Set{"l": "yes"})
		r := labels.SelectorFromSet(labels.Set{"r": "yes"})
		q.AnyOf = []Selection{{Labels: l}, {Labels: r}}
		s.create("as", thing("x", "l", "yes"))
		s.create("as", thing("both", "l", "yes", "r", "yes"))
		s.create("as", thing("none"))
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+both", "+x"}, told(update(t, a, &snap)))

		s.mu.Lock()
		s.delayOf = func(w *simWatch) time.Duration {
			if w.filter.labels.Matches(labels.Set{"r": "yes"}) {
				return time.Minute
			}
			return 0
		}
		s.mu.Unlock()
		s.relabel("x", "r", "yes") // it moves from one to the other
		synctest.Wait()
		assert.Empty(t, told(update(t, a, &snap)), "it never was out of the query")
		assert.Equal(t, []string{"both", "x"}, names(snap.A))

		s.relabel("both", "l", "yes", "r", "yes", "n", "2")
		synctest.Wait()
		assert.Equal(t, []string{"~both"}, told(update(t, a, &snap)))
		s.remove("as", "both")
		synctest.Wait()
		assert.Empty(t, told(update(t, a, &snap)), "the other watch still has it, older than it was shown")

		after(time.Second)
		synctest.Wait()
		after(10 * time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, names(snap.A))
		assert.Equal(t, "yes", snap.A[0].GetLabels()["r"])
	})
}

func TestG4OwnWritesInAUnionAreShownAtOnce(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("A", "as")
		q.AnyOf = []Selection{
			{Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{"r": "yes"})},
		}
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		s.late(time.Hour)
		o := own{s, streams}
		var snap one
		o.put("as", thing("x", "l", "yes"), 0)
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		o.put("as", s.relabelled("x", "r", "yes"), 0)
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		o.put("as", s.relabelled("x"), 0)
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		o.put("as", s.relabelled("x", "r", "yes", "l", "yes"), 0)
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		require.True(t, o.delete("as", "x", 0, true))
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		after(3 * time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG5ADeletionThatOneWatchOfAUnionIsTooQuietToConfirmIsShownSoon(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("A", "as")
		q.AnyOf = []Selection{
			{Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{"r": "yes"})},
		}
		s.create("as", thing("x", "l", "yes"))
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.remove("as", "x")
		signalled(a)
		assert.Empty(t, told(update(t, a, &snap)), "the other watch may have it")
		after(time.Second) // no bookmark comes: the server is asked
		assert.True(t, signalled(a))
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
		assert.Empty(t, snap.A)
	})
}

// lateWatches makes events come a minute late in watches whose selector has a label.
func lateWatches(s *sim, label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delayOf = func(w *simWatch) time.Duration {
		if w.filter.labels.Matches(labels.Set{label: "yes"}) {
			return time.Minute
		}
		return 0
	}
}

// union returns a query that selects by either of two labels.
func union() Query {
	q := simQuery("A", "as")
	q.AnyOf = []Selection{
		{Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{"r": "yes"})},
	}
	return q
}

func TestG8AnObjectThatMovesThereAndBackIsNeverOutOfAUnionThoughOneWatchIsLate(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "l", "yes"))
		a := watching(t, streams, Options{}, union())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "l")
		steps := map[int]func(){
			10: func() { s.relabel("x", "r", "yes") },
			20: func() { s.relabel("x", "l", "yes") },
		}
		for second := range 600 {
			if step := steps[second]; step != nil {
				step()
			}
			after(time.Second)
			synctest.Wait()
			update(t, a, &snap)
			require.Equal(t, []string{"x"}, names(snap.A), "after %d s", second)
		}
		assert.Equal(t, map[string]string{"l": "yes"}, snap.A[0].GetLabels())
	})
}

func TestG5WhatLeftAUnionDoesNotComeBackAsItWasThoughOneWatchIsLate(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "l", "yes"))
		s.create("as", thing("y", "r", "yes"))
		a := watching(t, streams, Options{}, union())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "r")
		steps := map[int]func(){
			10: func() { s.relabel("x", "l", "yes", "r", "yes") },
			20: func() { s.relabel("x", "l", "yes") },
			30: func() { s.relabel("x", "l", "yes", "r", "yes") },
			35: func() { s.touch("as", "y", 1) }, // the late watch is not known to be complete
			40: func() { s.remove("as", "x") },
		}
		var all []string
		for second := range 600 {
			if step := steps[second]; step != nil {
				step()
			}
			after(time.Second)
			synctest.Wait()
			all = append(all, told(update(t, a, &snap))...)
		}
		assert.Equal(t, []string{"~x", "~x", "~x", "-x"}, slices.DeleteFunc(all, func(d string) bool { return d == "~y" }))
	})
}

func TestG5AStreamThatTakesAnothersPlaceTakesNothingBackThoughItIsLate(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "l", "yes", "r", "yes"))
		q := simQuery("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"l": "yes"})
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "r")
		s.mu.Lock()
		// Its list is as old when it comes. A probe is a list too, and waits for 30 s: chance
		// would decide between two timers at one moment.
		s.listAnswer = func(string) time.Duration { return 29 * time.Second }
		s.mu.Unlock()
		q.Labels = labels.SelectorFromSet(labels.Set{"r": "yes"})
		require.NoError(t, a.Replace(t.Context(), q))
		shown := snap.A[0].GetResourceVersion()
		steps := map[int]func(){
			5:  func() { s.touch("as", "x", 1) },
			10: func() { s.relabel("x", "l", "yes") },
			15: func() { s.relabel("x", "l", "yes", "r", "yes") },
			20: func() { s.touch("as", "x", 2) },
		}
		for second := range 600 {
			if step := steps[second]; step != nil {
				step()
			}
			after(time.Second)
			synctest.Wait()
			update(t, a, &snap)
			require.Equal(t, []string{"x"}, names(snap.A), "after %d s", second)
			require.False(t, coherence.Newer(shown, snap.A[0].GetResourceVersion()), "after %d s", second)
			shown = snap.A[0].GetResourceVersion()
		}
		s.touch("as", "x", 3)
		after(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
	})
}

func TestAKindThatIsReplacedByAnotherIsNotComparedWithIt(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("bs", thing("x"))
		s.create("as", thing("x")) // newer, and of another kind
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		require.NoError(t, a.Replace(t.Context(), simQuery("A", "bs")))
		synctest.Wait()
		assert.Equal(t, []string{"-x", "+x"}, told(update(t, a, &snap)))
		s.touch("bs", "x", 1)
		synctest.Wait()
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
	})
}

func TestG5AUnionThatIsPutTogetherAnewTakesNothingBackThoughOneWatchIsLate(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "l", "yes", "r", "yes"))
		a := watching(t, streams, Options{}, union())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.mu.Lock()
		s.delayOf = func(w *simWatch) time.Duration {
			if w.filter.labels.Matches(labels.Set{"r": "yes"}) {
				return time.Minute
			}
			return 0
		}
		s.mu.Unlock()
		s.relabel("x", "l", "yes", "r", "yes", "n", "2")
		synctest.Wait()
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		s.remove("as", "x")
		synctest.Wait()
		a.fields[0].parts[0].sub.Stage().Restart() // as after a give-up
		assert.Empty(t, told(update(t, a, &snap)), "the late watch has an older version")
		after(10 * time.Minute)
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)))
	})
}

func TestG8WhatHasJoinedTheNewQueryStaysThoughItsFirstListIsOlder(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "l", "yes"))
		s.create("as", thing("y", "l", "yes"))
		q := simQuery("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"l": "yes"})
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "r")
		s.mu.Lock()
		s.listAnswer = func(string) time.Duration { return 29 * time.Second }
		s.mu.Unlock()
		q.Labels = labels.SelectorFromSet(labels.Set{"r": "yes"})
		require.NoError(t, a.Replace(t.Context(), q))
		after(5 * time.Second)
		s.relabel("x", "l", "yes", "r", "yes")
		var all []string
		for second := range 300 {
			after(time.Second)
			synctest.Wait()
			all = append(all, told(update(t, a, &snap))...)
			require.Contains(t, names(snap.A), "x", "after %d s", second)
		}
		assert.Equal(t, []string{"~x", "-y"}, all)
	})
}

func TestG1TheFirstSnapshotOfAUnionHasWhatIsOnItsWayFromOneWatchToTheOther(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		l, r := labels.SelectorFromSet(labels.Set{"l": "yes"}), labels.SelectorFromSet(labels.Set{"r": "yes"})
		left, right := simQuery("A", "as"), simQuery("B", "as")
		left.Labels, right.Labels = l, r
		require.True(t, signalled(watching(t, streams, Options{}, left, right)))
		s.create("as", thing("x", "l", "yes"))
		synctest.Wait()
		lateWatches(s, "r")
		s.relabel("x", "r", "yes")
		synctest.Wait() // one watch has released it, and the other has not brought it
		a := watching(t, streams, Options{}, union())
		assert.False(t, signalled(a))
		assert.Error(t, a.Ready())
		after(2 * time.Minute)
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
	})
}

func TestG4WhatComesAndGoesUnreadInAUnionIsShownUntilItIsKnownWhere(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{Pace: Pace{Interval: 10 * second}}, union())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		lateWatches(s, "r")
		own{s, streams}.put("as", thing("x", "l", "yes"), 0)
		s.relabel("x", "r", "yes") // another writer moves it to the late watch
		synctest.Wait()
		assert.False(t, signalled(a), "not before its time")
		after(10 * second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		after(5 * time.Minute)
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
		assert.Equal(t, "yes", snap.A[0].GetLabels()["r"])
		assert.Empty(t, a.fields[0].held)
	})
}

func TestG5AReaderOfAUnionNeverGoesBackThoughOneWatchIsLate(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		key := Key{Namespace: "ns", Name: "x"}
		s.create("as", thing("x", "l", "yes", "r", "yes"))
		r, err := Open(t.Context(), streams, union())
		require.NoError(t, err)
		require.NoError(t, r.Wait(t.Context()))
		lateWatches(s, "r")
		s.relabel("x", "l", "yes", "r", "yes", "n", "2")
		synctest.Wait()
		second := r.Get(key)
		assert.Equal(t, "2", second.GetLabels()["n"])
		s.relabel("x", "r", "yes", "n", "3") // it leaves the watch that is not late
		synctest.Wait()
		assert.Same(t, second, r.Get(key), "the late one has it, as it was before that")
		assert.Len(t, r.List("", nil), 1)
		after(5 * time.Minute)
		assert.Equal(t, "3", r.Get(key).GetLabels()["n"])
		s.remove("as", "x")
		after(5 * time.Minute)
		r.Get(key) // no bookmark comes: the server is asked
		after(time.Second)
		assert.Nil(t, r.Get(key))
		assert.Empty(t, r.List("", nil))
	})
}
