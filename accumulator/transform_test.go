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

	"github.com/kates-go/kates/accumulator/stream"
)

// counting is a transform that drops the spec and counts its calls by version.
type counting struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *counting) transform(o Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[o.GetName()+"@"+o.GetResourceVersion()]++
	delete(o.(*unstructured.Unstructured).Object, "spec")
	return nil
}

func TestATransformRunsOncePerVersionHoweverOftenItComes(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		bubble(t, stream.Config{StreamLists: streamed}, func(t *testing.T, s *sim, streams *stream.Set) {
			c := &counting{calls: map[string]int{}}
			q := simQuery("A", "as")
			q.Transform = c.transform
			s.create("as", thing("a"))
			s.touch("as", "a", 1)
			acc := watching(t, streams, Options{}, q)
			synctest.Wait()
			s.touch("as", "a", 2)
			// later, so that the watch and the answer are not prepared at the same time
			own{s, streams}.put("as", thing("b"), time.Second)
			synctest.Wait()
			var snap one
			update(t, acc, &snap)
			require.Len(t, snap.A, 2)
			shown := snap.A[0]
			s.mu.Lock()
			s.oldest = s.rev + 1 // what follows is a new list
			s.mu.Unlock()
			s.cut()
			after(time.Minute)
			require.Positive(t, acc.Status()[0].Restarts)
			assert.False(t, update(t, acc, &snap).Changed)
			assert.Same(t, shown, snap.A[0])
			assert.NotContains(t, shown.Object, "spec")
			c.mu.Lock()
			defer c.mu.Unlock()
			assert.Equal(t, map[string]int{"a@102": 1, "a@103": 1, "b@104": 1}, c.calls)
		})
	}
}

func TestATransformDoesNotTouchWhatOthersHave(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		c := &counting{calls: map[string]int{}}
		q := simQuery("A", "as")
		q.Transform = c.transform
		plain, dropping := watching(t, streams, Options{}, simQuery("A", "as")), watching(t, streams, Options{}, q)
		synctest.Wait()
		u := thing("x")
		require.NoError(t, unstructured.SetNestedField(u.Object, "n", "spec", "node"))
		s.mu.Lock()
		s.delay = func(string) time.Duration { return 10 * second }
		s.mu.Unlock()
		own{s, streams}.put("as", u, 0)
		var whole, dropped one
		update(t, plain, &whole)
		update(t, dropping, &dropped)
		assert.Contains(t, whole.A[0].Object, "spec")
		assert.NotContains(t, dropped.A[0].Object, "spec")
	})
}

func TestG8ATransformThatFailsLeavesOneObjectOutUntilItsNextVersion(t *testing.T) {
	for name, fail := range map[string]func(o Object) error{
		"the transform panicked: a bug": func(Object) error { panic("a bug") },
		"transform: no good":            func(Object) error { return errors.New("no good") },
		"changed what says which object it is": func(o Object) error {
			o.SetName("other")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				q := simQuery("A", "as")
				q.Transform = func(o Object) error {
					if o.GetLabels()["bad"] == "yes" {
						return fail(o)
					}
					return nil
				}
				s.create("as", thing("bad", "bad", "yes"))
				s.create("as", thing("good"))
				var reported []Invalid
				acc := watching(t, streams, Options{Invalid: func(i Invalid) { reported = append(reported, i) }}, q)
				synctest.Wait()
				var snap one
				r := update(t, acc, &snap)
				assert.Equal(t, []string{"good"}, names(snap.A))
				require.Len(t, r.Invalid, 1)
				require.ErrorContains(t, r.Invalid[0].Err, name)
				assert.Len(t, reported, 1)
				bad := r.Invalid[0].Object
				assert.Equal(t, "ns/bad Thing 101", bad.GetNamespace()+"/"+bad.GetName()+" "+bad.GetObjectKind().GroupVersionKind().Kind+" "+bad.GetResourceVersion())
				assert.Equal(t, 1, acc.Status()[0].Invalid)
				assert.Equal(t, 2, acc.Status()[0].Objects)

				r, err := acc.Update(t.Context(), &snap, &Judgement{func(*unstructured.Unstructured) bool { return true }})
				require.NoError(t, err)
				require.Len(t, r.Invalid, 1, "no predicate brings it back")
				assert.ErrorContains(t, r.Invalid[0].Err, name)
				type other struct{ A []map[string]any }
				var converted other
				assert.Len(t, update(t, acc, &converted).Invalid, 1, "nor another type")
				assert.Len(t, converted.A, 1)

				s.create("as", thing("bad"))
				synctest.Wait()
				r = update(t, acc, &snap)
				assert.Equal(t, []string{"bad", "good"}, names(snap.A), "it heals")
				assert.Empty(t, r.Invalid)
				own{s, streams}.put("as", thing("good", "bad", "yes"), 0) // by an own write
				r = update(t, acc, &snap)
				assert.Equal(t, []string{"bad"}, names(snap.A))
				assert.Len(t, r.Invalid, 1)
				require.Len(t, r.Differences, 1)
				assert.Nil(t, r.Differences[0].New, "what is left out is a delete")
				s.remove("as", "good")
				synctest.Wait()
				r = update(t, acc, &snap)
				assert.Empty(t, r.Invalid)
				assert.Empty(t, r.Differences)
			})
		})
	}
}

func TestSelectorsJudgeWhatTheServerHasAndNotWhatATransformLeft(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		q.Transform = func(o Object) error { o.SetLabels(nil); return nil }
		s.create("as", thing("listed", "in", "yes"))
		acc := watching(t, streams, Options{}, q)
		synctest.Wait()
		s.create("as", thing("watched", "in", "yes"))
		own{s, streams}.put("as", thing("written", "in", "yes"), 0)
		synctest.Wait()
		var snap one
		update(t, acc, &snap)
		assert.Equal(t, []string{"listed", "watched", "written"}, names(snap.A))
		assert.Empty(t, snap.A[0].GetLabels())
		s.create("as", thing("watched", "in", "no"))
		own{s, streams}.put("as", thing("written", "in", "no"), 0)
		synctest.Wait()
		update(t, acc, &snap)
		assert.Equal(t, []string{"listed"}, names(snap.A))
	})
}

func TestQueriesShareAStreamIfTheirTransformsAreOneFunction(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		closure := func(n int) Transform { return func(o Object) error { o.SetGeneration(int64(n)); return nil } }
		first, second := closure(1), closure(2)
		for i, f := range []Transform{nil, first, second, first, nil} {
			q := simQuery("A", "as")
			q.Transform = f
			watching(t, streams, Options{}, q)
			synctest.Wait()
			assert.Equal(t, min(i+1, 3), s.opened("as"))
		}
	})
}

func TestG4OnAFakeOwnWritesThatATransformChangesOrRejectsHoldAndEnd(t *testing.T) {
	for _, rejecting := range []bool{false, true} {
		bubble(t, stream.Config{ByContent: true, Hold: time.Hour}, func(t *testing.T, s *sim, streams *stream.Set) {
			q := simQuery("A", "as")
			q.Transform = func(o Object) error {
				delete(o.(*unstructured.Unstructured).Object, "spec")
				if rejecting {
					panic("always")
				}
				return nil
			}
			acc := watching(t, streams, Options{QuietOwnWrites: true}, q)
			synctest.Wait()
			signalled(acc)
			var snap one
			update(t, acc, &snap)
			u := thing("x")
			u.SetUID("uid-1")
			u.SetResourceVersion("101")
			fakeWrite(streams, u, func() { s.put("as", Key{Namespace: "ns", Name: "x"}, u) }, second)
			r := update(t, acc, &snap)
			assert.True(t, r.Changed)
			assert.Len(t, r.Invalid, map[bool]int{true: 1}[rejecting])
			assert.False(t, signalled(acc), "its event, which overtook the answer, was its own")
			assert.Zero(t, acc.Status()[0].Pending)
			require.NoError(t, streams.Sync(t.Context()), "contents are compared as they are held")
		})
	}
}

func TestAServerThatSaysWhenToTryAgainIsObeyedBeforeAWriteIsUnsettled(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		refused := 0
		s.failing(func(verb, _ string) error {
			if refused++; verb == "list" && refused < 3 {
				return apierrors.NewTooManyRequests("busy", 2)
			}
			return nil
		})
		start := time.Now()
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, 4*second, time.Since(start))
		s.failing(func(string, string) error { return apierrors.NewTooManyRequests("busy", 2) })
		assert.ErrorContains(t, streams.Sync(t.Context()), "busy")
	})
}
