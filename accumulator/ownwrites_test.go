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

	"github.com/kates-go/kates/accumulator/stream"
)

func TestG4AnEventThatOvertakesTheAnswerIsNotTakenBackByIt(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		o := own{s, streams}
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			o.put("as", thing("x"), 10*second)
		}()
		synctest.Wait()
		s.touch("as", "x", 7) // another writer's, newer
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
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		o := own{s, streams}
		in := simQuery("A", "as")
		in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		fast, slow := watching(t, streams, Options{}, simQuery("A", "as")), watching(t, streams, Options{}, in)
		var quick, late one
		synctest.Wait()
		update(t, fast, &quick)
		update(t, slow, &late)
		s.mu.Lock()
		s.delayOf = func(w *simWatch) time.Duration {
			if w.filter.labels.Empty() {
				return 0
			}
			return time.Minute
		}
		s.mu.Unlock()
		x := thing("x", "in", "yes")
		x.SetUID("x")
		for i := range 10 {
			_ = unstructured.SetNestedField(x.Object, int64(i), "spec", "n")
			o.put("as", x, 0)
			synctest.Wait()
			update(t, fast, &quick)
			update(t, slow, &late)
			require.Equal(t, strconv.Itoa(s.rev), quick.A[0].GetResourceVersion())
			require.Equal(t, strconv.Itoa(s.rev), late.A[0].GetResourceVersion(), "what the fast one has seen ends nothing here")
		}
		after(time.Hour)
		synctest.Wait()
		assert.False(t, update(t, slow, &late).Changed)
		assert.Zero(t, slow.Status()[0].Pending)
	})
}

func TestG4AWriteThroughAnotherVersionOfTheResourceIsShown(t *testing.T) {
	v2 := simResource("as")
	v2.Version = "v2"
	q := simQuery("A", "as")
	q.Resolve = func(context.Context) (Resource, error) { return v2, nil }
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		o := own{s, streams}
		a := watching(t, streams, Options{}, q)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.late(time.Minute)
		lists := s.lists["as"]
		o.put("as", thing("x"), 0)
		update(t, a, &snap)
		assert.Len(t, snap.A, 1)
		assert.Equal(t, lists+1, s.lists["as"], "one list for the form that is watched")
		require.True(t, o.delete("as", "x", 0, true))
		update(t, a, &snap)
		assert.Empty(t, snap.A)
	})
}

func TestG4AStreamThatStartsAfterAnOwnWriteShowsIt(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("deleted"))
				before := s.rev
				s.mu.Lock()
				s.lag = func(_, atLeast int) int { return max(atLeast, before) } // caches are old
				s.mu.Unlock()
				s.late(time.Hour)
				o := own{s, streams}
				o.put("as", thing("x"), 0)
				require.True(t, o.delete("as", "deleted", 0, false), "at a version that nobody is told")
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x"}, names(snap.A))
			})
		})
	}
}

func TestG4AWriteThatFailedOrMayHaveFailedLeavesNoTrace(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint("it happened: ", happened), func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				s.late(second)
				w := streams.Begin(simResource("as"), Key{Namespace: "ns", Name: "x"})
				if happened {
					s.create("as", thing("x"))
				}
				w.Abandon()
				assert.False(t, update(t, a, &snap).Changed)
				after(2 * second)
				synctest.Wait()
				assert.Equal(t, happened, update(t, a, &snap).Changed, "the watch tells")
				assert.Zero(t, a.Status()[0].Pending)
				assert.Zero(t, a.fields[0].parts[0].sub.Stage().Held().Flights)
			})
		})
	}
}

func TestG4OwnWritesAreInTheNextSnapshotThoughTheWatchIsLate(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.delay = func(string) time.Duration { return time.Minute }
		o := own{s, streams}
		for _, versioned := range []bool{true, false} {
			o.put("as", thing("x"), 0)
			r := update(t, a, &snap)
			require.Len(t, snap.A, 1)
			require.Len(t, r.Differences, 1)
			shown := snap.A[0]
			assert.False(t, update(t, a, &snap).Changed)
			o.put("as", thing("x", "new", "label"), 0)
			assert.True(t, update(t, a, &snap).Changed)
			assert.NotSame(t, shown, snap.A[0])
			require.True(t, o.delete("as", "x", 0, versioned))
			assert.True(t, update(t, a, &snap).Changed)
			assert.Empty(t, snap.A)
		}
		after(time.Hour)
		synctest.Wait()
		r := update(t, a, &snap)
		assert.False(t, r.Changed, "the watch brings nothing new")
		assert.Zero(t, a.Status()[0].Pending, "G6")
	})
}

func TestG4AWriteThatMovesAnObjectInOrOutOfTheQueryIsShown(t *testing.T) {
	in, _ := labels.Parse("in=yes")
	q := simQuery("A", "as")
	q.Labels = in
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, q)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.delay = func(string) time.Duration { return time.Minute }
		o := own{s, streams}
		x := thing("x", "in", "no")
		x.SetUID("x")
		o.put("as", x, 0)
		assert.False(t, update(t, a, &snap).Changed)
		for range 3 {
			x.SetLabels(map[string]string{"in": "yes"})
			o.put("as", x, 0)
			update(t, a, &snap)
			assert.Equal(t, []string{"x"}, names(snap.A))
			x.SetLabels(map[string]string{"in": "no"})
			o.put("as", x, 0)
			update(t, a, &snap)
			assert.Empty(t, snap.A)
		}
		after(time.Hour)
		s.bookmarks()
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG4WhereAWriteCannotBeJudgedTheServerIsAsked(t *testing.T) {
	node, _ := fields.ParseSelector("spec.node=n1")
	q := simQuery("A", "as")
	q.Fields = node
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, q)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.delay = func(string) time.Duration { return time.Minute }
		o := own{s, streams}
		x := thing("x")
		x.SetUID("x")
		for _, n := range []string{"n1", "n2", "n1"} {
			_ = unstructured.SetNestedField(x.Object, n, "spec", "node")
			o.put("as", x, 0)
			update(t, a, &snap)
			assert.Equal(t, n == "n1", len(snap.A) == 1, n)
		}
		require.True(t, o.delete("as", "x", 0, false))
		update(t, a, &snap)
		assert.Empty(t, snap.A)
		s.failing(func(verb, _ string) error {
			if verb == "list" {
				return apierrors.NewInternalError(errors.New("gone"))
			}
			return nil
		})
		o.put("as", x, 0)
		assert.Equal(t, 1, a.Status()[0].Unsettled, "the one exception is in the status")
		s.failing(nil)
		after(time.Hour)
		s.bookmarks()
		after(time.Hour)
		update(t, a, &snap)
		assert.Len(t, snap.A, 1, "and the watch settles it")
		assert.Zero(t, a.Status()[0].Unsettled)
	})
}
