package accumulator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestG4AnEventThatOvertakesTheAnswerIsNotTakenBackByIt(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		o := sim.NewClient(s, streams)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			o.Put("as", sim.Thing("x"), 10*second)
		}()
		synctest.Wait()
		s.Touch("as", "x", 7) // another writer's, newer
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		shown := snap.A[0]
		<-answered
		assert.False(t, update(t, a, &snap).Changed)
		assert.Same(t, shown, snap.A[0])
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG4EveryAccumulatorShowsAnOwnWriteHoweverSlowItsWatch(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		o := sim.NewClient(s, streams)
		in := sim.Query("A", "as")
		in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		fast, slow := watching(t, streams, collect.Options{}, sim.Query("A", "as")), watching(t, streams, collect.Options{}, in)
		var quick, late one
		synctest.Wait()
		update(t, fast, &quick)
		update(t, slow, &late)
		s.Mu.Lock()
		s.DelayOf = func(w *sim.Watch) time.Duration {
			if w.Filter.Labels.Empty() {
				return 0
			}
			return time.Minute
		}
		s.Mu.Unlock()
		x := sim.Thing("x", "in", "yes")
		x.SetUID("x")
		for i := range 10 {
			_ = unstructured.SetNestedField(x.Object, int64(i), "spec", "n")
			o.Put("as", x, 0)
			synctest.Wait()
			update(t, fast, &quick)
			update(t, slow, &late)
			require.Equal(t, strconv.Itoa(s.Rev), quick.A[0].GetResourceVersion())
			require.Equal(t, strconv.Itoa(s.Rev), late.A[0].GetResourceVersion(), "what the fast one has seen ends nothing here")
		}
		sim.After(time.Hour)
		synctest.Wait()
		assert.False(t, update(t, slow, &late).Changed)
		assert.Zero(t, slow.Status()[0].Pending)
	})
}

func TestG4AWriteThroughAnotherVersionOfTheResourceIsShown(t *testing.T) {
	v2 := sim.Resource("as")
	v2.Version = "v2"
	q := sim.Query("A", "as")
	q.Resolve = func(context.Context) (object.Resource, error) { return v2, nil }
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		o := sim.NewClient(s, streams)
		a := watching(t, streams, collect.Options{}, q)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Late(time.Minute)
		lists := s.Lists["as"]
		o.Put("as", sim.Thing("x"), 0)
		update(t, a, &snap)
		assert.Len(t, snap.A, 1)
		assert.Equal(t, lists+1, s.Lists["as"], "one list for the form that is watched")
		require.True(t, o.Delete("as", "x", 0, true))
		update(t, a, &snap)
		assert.Empty(t, snap.A)
	})
}

func TestG4AStreamThatStartsAfterAnOwnWriteShowsIt(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("deleted"))
				before := s.Rev
				s.Mu.Lock()
				s.Lag = func(_, atLeast int) int { return max(atLeast, before) } // caches are old
				s.Mu.Unlock()
				s.Late(time.Hour)
				o := sim.NewClient(s, streams)
				o.Put("as", sim.Thing("x"), 0)
				require.True(t, o.Delete("as", "deleted", 0, false), "at a version that nobody is told")
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x"}, sim.Names(snap.A))
			})
		})
	}
}

func TestG4AWriteThatFailedOrMayHaveFailedLeavesNoTrace(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint("it happened: ", happened), func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				s.Late(second)
				w := streams.Begin(sim.Resource("as"), object.Key{Namespace: "ns", Name: "x"})
				if happened {
					s.Create("as", sim.Thing("x"))
				}
				w.Abandon()
				assert.False(t, update(t, a, &snap).Changed)
				sim.After(2 * second)
				synctest.Wait()
				assert.Equal(t, happened, update(t, a, &snap).Changed, "the watch tells")
				assert.Zero(t, a.Status()[0].Pending)
				assert.Zero(t, listener(a, 0).Stage().Held().Flights)
			})
		})
	}
}

func TestG4OwnWritesAreInTheNextSnapshotThoughTheWatchIsLate(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Delay = func(string) time.Duration { return time.Minute }
		o := sim.NewClient(s, streams)
		for _, versioned := range []bool{true, false} {
			o.Put("as", sim.Thing("x"), 0)
			r := update(t, a, &snap)
			require.Len(t, snap.A, 1)
			require.Len(t, r.Differences, 1)
			shown := snap.A[0]
			assert.False(t, update(t, a, &snap).Changed)
			o.Put("as", sim.Thing("x", "new", "label"), 0)
			assert.True(t, update(t, a, &snap).Changed)
			assert.NotSame(t, shown, snap.A[0])
			require.True(t, o.Delete("as", "x", 0, versioned))
			assert.True(t, update(t, a, &snap).Changed)
			assert.Empty(t, snap.A)
		}
		sim.After(time.Hour)
		synctest.Wait()
		r := update(t, a, &snap)
		assert.False(t, r.Changed, "the watch brings nothing new")
		assert.Zero(t, a.Status()[0].Pending, "G6")
	})
}

func TestG4AWriteThatMovesAnObjectInOrOutOfTheQueryIsShown(t *testing.T) {
	in, _ := labels.Parse("in=yes")
	q := sim.Query("A", "as")
	q.Labels = in
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, q)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Delay = func(string) time.Duration { return time.Minute }
		o := sim.NewClient(s, streams)
		x := sim.Thing("x", "in", "no")
		x.SetUID("x")
		o.Put("as", x, 0)
		assert.False(t, update(t, a, &snap).Changed)
		for range 3 {
			x.SetLabels(map[string]string{"in": "yes"})
			o.Put("as", x, 0)
			update(t, a, &snap)
			assert.Equal(t, []string{"x"}, sim.Names(snap.A))
			x.SetLabels(map[string]string{"in": "no"})
			o.Put("as", x, 0)
			update(t, a, &snap)
			assert.Empty(t, snap.A)
		}
		sim.After(time.Hour)
		s.Bookmarks()
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG4WhereAWriteCannotBeJudgedTheServerIsAsked(t *testing.T) {
	node, _ := fields.ParseSelector("spec.node=n1")
	q := sim.Query("A", "as")
	q.Fields = node
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, q)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Delay = func(string) time.Duration { return time.Minute }
		o := sim.NewClient(s, streams)
		x := sim.Thing("x")
		x.SetUID("x")
		for _, n := range []string{"n1", "n2", "n1"} {
			_ = unstructured.SetNestedField(x.Object, n, "spec", "node")
			o.Put("as", x, 0)
			update(t, a, &snap)
			assert.Equal(t, n == "n1", len(snap.A) == 1, n)
		}
		require.True(t, o.Delete("as", "x", 0, false))
		update(t, a, &snap)
		assert.Empty(t, snap.A)
		s.Failing(func(verb, _ string) error {
			if verb == "list" {
				return apierrors.NewInternalError(errors.New("gone"))
			}
			return nil
		})
		o.Put("as", x, 0)
		assert.Equal(t, 1, a.Status()[0].Unsettled, "the one exception is in the status")
		s.Failing(nil)
		sim.After(time.Hour)
		s.Bookmarks()
		sim.After(time.Hour)
		update(t, a, &snap)
		assert.Len(t, snap.A, 1, "and the watch settles it")
		assert.Zero(t, a.Status()[0].Unsettled)
	})
}
