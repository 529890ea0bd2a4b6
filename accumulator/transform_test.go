package accumulator

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// counting is a transform that drops the spec and counts its calls by version.
type counting struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *counting) transform(o object.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[o.GetName()+"@"+o.GetResourceVersion()]++
	delete(o.(*unstructured.Unstructured).Object, "spec")
	return nil
}

func TestATransformRunsOncePerVersionAndOnceMoreForEachListOfIt(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		sim.Bubble(t, stream.Config{StreamLists: streamed}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			c := &counting{calls: map[string]int{}}
			q := sim.Query("A", "as")
			q.Transform = &object.Transform{Do: c.transform}
			s.Create("as", sim.Thing("a"))
			s.Touch("as", "a", 1)
			acc := watching(t, streams, collect.Options{}, q)
			synctest.Wait()
			s.Touch("as", "a", 2)
			// later, so that the watch and the answer are not prepared at the same time
			sim.NewClient(s, streams).Put("as", sim.Thing("b"), time.Second)
			synctest.Wait()
			var snap one
			update(t, acc, &snap)
			require.Len(t, snap.A, 2)
			shown := snap.A[0]
			s.Relist()
			sim.After(time.Minute)
			require.Equal(t, 1, acc.Status()[0].Restarts)
			assert.False(t, update(t, acc, &snap).Changed)
			assert.Same(t, shown, snap.A[0])
			assert.NotContains(t, shown.Object, "spec")
			c.mu.Lock()
			defer c.mu.Unlock()
			assert.Equal(t, map[string]int{"a@102": 1, "a@103": 2, "b@104": 2}, c.calls)
		})
	}
}

func TestATransformDoesNotTouchWhatOthersHave(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		c := &counting{calls: map[string]int{}}
		q := sim.Query("A", "as")
		q.Transform = &object.Transform{Do: c.transform}
		plain, dropping := watching(t, streams, collect.Options{}, sim.Query("A", "as")), watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		u := sim.Thing("x")
		require.NoError(t, unstructured.SetNestedField(u.Object, "n", "spec", "node"))
		s.Mu.Lock()
		s.Delay = func(string) time.Duration { return 10 * second }
		s.Mu.Unlock()
		sim.NewClient(s, streams).Put("as", u, 0)
		var whole, dropped one
		update(t, plain, &whole)
		update(t, dropping, &dropped)
		assert.Contains(t, whole.A[0].Object, "spec")
		assert.NotContains(t, dropped.A[0].Object, "spec")
	})
}

func TestG8ATransformThatFailsLeavesOneObjectOutUntilItsNextVersion(t *testing.T) {
	for name, fail := range map[string]func(o object.Object) error{
		"the transform panicked: a bug": func(object.Object) error { panic("a bug") },
		"transform: no good":            func(object.Object) error { return errors.New("no good") },
		"changed what says which object it is": func(o object.Object) error {
			o.SetName("other")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				q := sim.Query("A", "as")
				q.Transform = &object.Transform{Do: func(o object.Object) error {
					if o.GetLabels()["bad"] == "yes" {
						return fail(o)
					}
					return nil
				}}
				s.Create("as", sim.Thing("bad", "bad", "yes"))
				s.Create("as", sim.Thing("good"))
				var reported []tables.Invalid
				acc := watching(t, streams, collect.Options{Invalid: func(i tables.Invalid) { reported = append(reported, i) }}, q)
				synctest.Wait()
				var snap one
				r := update(t, acc, &snap)
				assert.Equal(t, []string{"good"}, sim.Names(snap.A))
				require.Len(t, r.Invalid, 1)
				require.ErrorContains(t, r.Invalid[0].Err, name)
				assert.Len(t, reported, 1)
				bad := r.Invalid[0].Object
				assert.Equal(t, "ns/bad Thing 101", bad.GetNamespace()+"/"+bad.GetName()+" "+bad.GetObjectKind().GroupVersionKind().Kind+" "+bad.GetResourceVersion())
				assert.Equal(t, 1, acc.Status()[0].Invalid)
				assert.Equal(t, 2, acc.Status()[0].Objects)

				r, err := acc.Update(t.Context(), &snap, Pass(func(*unstructured.Unstructured) bool { return true }))
				require.NoError(t, err)
				require.Len(t, r.Invalid, 1, "no predicate brings it back")
				assert.ErrorContains(t, r.Invalid[0].Err, name)
				type other struct{ A []map[string]any }
				var converted other
				assert.Len(t, update(t, acc, &converted).Invalid, 1, "nor another type")
				assert.Len(t, converted.A, 1)

				s.Create("as", sim.Thing("bad"))
				synctest.Wait()
				r = update(t, acc, &snap)
				assert.Equal(t, []string{"bad", "good"}, sim.Names(snap.A), "it heals")
				assert.Empty(t, r.Invalid)
				sim.NewClient(s, streams).Put("as", sim.Thing("good", "bad", "yes"), 0) // by an own write
				r = update(t, acc, &snap)
				assert.Equal(t, []string{"bad"}, sim.Names(snap.A))
				assert.Len(t, r.Invalid, 1)
				require.Len(t, r.Differences, 1)
				assert.Nil(t, r.Differences[0].New, "what is left out is a delete")
				s.Remove("as", "good")
				synctest.Wait()
				r = update(t, acc, &snap)
				assert.Empty(t, r.Invalid)
				assert.Empty(t, r.Differences)
			})
		})
	}
}

func TestSelectorsJudgeWhatTheServerHasAndNotWhatATransformLeft(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		q.Transform = &object.Transform{Do: func(o object.Object) error { o.SetLabels(nil); return nil }}
		s.Create("as", sim.Thing("listed", "in", "yes"))
		acc := watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		s.Create("as", sim.Thing("watched", "in", "yes"))
		sim.NewClient(s, streams).Put("as", sim.Thing("written", "in", "yes"), 0)
		synctest.Wait()
		var snap one
		update(t, acc, &snap)
		assert.Equal(t, []string{"listed", "watched", "written"}, sim.Names(snap.A))
		assert.Empty(t, snap.A[0].GetLabels())
		s.Create("as", sim.Thing("watched", "in", "no"))
		sim.NewClient(s, streams).Put("as", sim.Thing("written", "in", "no"), 0)
		synctest.Wait()
		update(t, acc, &snap)
		assert.Equal(t, []string{"listed"}, sim.Names(snap.A))
	})
}

func TestQueriesShareAStreamIfTheirTransformsAreOneFunction(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		closure := func(n int) *object.Transform {
			return &object.Transform{Do: func(o object.Object) error { o.SetGeneration(int64(n)); return nil }}
		}
		first, second := closure(1), closure(2)
		for i, f := range []*object.Transform{nil, first, second, first, nil} {
			q := sim.Query("A", "as")
			q.Transform = f
			watching(t, streams, collect.Options{}, q)
			synctest.Wait()
			assert.Equal(t, min(i+1, 3), s.Opened("as"))
		}
	})
}

func TestAServerThatSaysWhenToTryAgainIsObeyedBeforeAWriteIsUnsettled(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		refused := 0
		s.Failing(func(verb, _ string) error {
			if refused++; verb == "list" && refused < 3 {
				return apierrors.NewTooManyRequests("busy", 2)
			}
			return nil
		})
		start := time.Now()
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, 4*second, time.Since(start))
		s.Failing(func(string, string) error { return apierrors.NewTooManyRequests("busy", 2) })
		assert.ErrorContains(t, streams.Sync(t.Context()), "busy")
	})
}
