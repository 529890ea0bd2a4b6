package accumulator

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// asked is a Signal for changes of a label, and remembers its calls.
type asked struct {
	mu  sync.Mutex
	all []string
}

func inLabel(o object.Object) string {
	if o == nil {
		return "-"
	}
	return o.GetName() + "=" + o.GetLabels()["in"]
}

func (a *asked) signal(old, current object.Object) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, inLabel(old)+" > "+inLabel(current))
	return old == nil || current == nil || old.GetLabels()["in"] != current.GetLabels()["in"]
}

func (a *asked) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

// judged watches things with a Signal, after the first snapshot, of x.
func judged(t *testing.T, s *sim.Server, streams *streamset.Set, o collect.Options, signal object.Signal) (*Accumulator, *one) {
	t.Helper()
	s.Create("as", sim.Thing("x", "in", "yes"))
	q := sim.Query("A", "as")
	q.Signal = signal
	acc := watching(t, streams, o, q)
	require.True(t, signalled(acc))
	var snap one
	update(t, acc, &snap)
	require.Len(t, snap.A, 1)
	return acc, &snap
}

func TestAChangeThatIsNotWorthASignalIsInTheNextSnapshotAllTheSame(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := &asked{}
		acc, snap := judged(t, s, streams, collect.Options{}, a.signal)
		plain := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(plain))
		update(t, plain, &one{})
		s.Touch("as", "x", 1)
		assert.False(t, signalled(acc))
		assert.True(t, signalled(plain), "it is the subscriber's own")
		assert.Equal(t, 1, s.Opened("as"), "the stream is shared")
		r := update(t, acc, snap)
		assert.True(t, r.Changed)
		assert.Len(t, r.Differences, 1)
		s.Create("as", sim.Thing("y"))
		assert.True(t, signalled(acc))
		update(t, acc, snap)
		s.Remove("as", "y")
		assert.True(t, signalled(acc))
		assert.Equal(t, []string{"x=yes > x=yes", "- > y=", "y= > -"}, a.taken())
	})
}

func TestAQuietChangeNeverSuppressesALoudOneOfTheSameObject(t *testing.T) {
	for name, order := range map[string][]string{
		"quiet, loud":        {"yes", "no"},
		"loud, quiet":        {"no", "no"},
		"loud and back":      {"no", "yes"},
		"quiet, loud, quiet": {"yes", "no", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				acc, _ := judged(t, s, streams, collect.Options{Pace: collect.Pace{Interval: second}}, (&asked{}).signal)
				sim.After(10 * second)
				for i, in := range order {
					x := sim.Thing("x", "in", in)
					x.SetUID("uid-1")
					x.SetGeneration(int64(i))
					s.Create("as", x)
				}
				assert.True(t, signalled(acc))
			})
		})
	}
}

func TestALoudChangeSignalsThoughOthersWereReadQuietly(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		acc, snap := judged(t, s, streams, collect.Options{}, (&asked{}).signal)
		for i := range 3 {
			s.Touch("as", "x", i)
			assert.False(t, signalled(acc))
			assert.True(t, update(t, acc, snap).Changed)
		}
		s.Create("as", sim.Thing("y"))
		assert.True(t, signalled(acc))
	})
}

func TestAfterAGapAChangeIsJudgedByWhatWasShownBefore(t *testing.T) {
	for in, loud := range map[string]bool{"yes": false, "no": true} {
		sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			a := &asked{}
			acc, _ := judged(t, s, streams, collect.Options{}, a.signal)
			s.Mu.Lock()
			s.Delay = func(string) time.Duration { return time.Hour }
			s.Mu.Unlock()
			x := sim.Thing("x", "in", in)
			x.SetUID("uid-1")
			s.Create("as", x)
			s.Touch("as", "x", 2)
			s.Mu.Lock()
			s.Oldest = s.Rev + 1
			s.Mu.Unlock()
			s.Cut()
			sim.After(time.Minute)
			require.Positive(t, acc.Status()[0].Restarts)
			assert.Equal(t, loud, signalled(acc), in)
			assert.Equal(t, []string{"x=yes > x=" + in}, a.taken(), "once")
		})
	}
}

func TestAnObjectThatWasReplacedByAnotherOfItsNameIsGoneAndNew(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var all []string
		acc, _ := judged(t, s, streams, collect.Options{}, func(old, current object.Object) bool {
			all = append(all, inLabel(old)+" > "+inLabel(current))
			return old == nil && current != nil
		})
		s.Create("as", sim.Thing("x", "in", "no")) // with another UID
		assert.True(t, signalled(acc))
		assert.Equal(t, []string{"x=yes > -", "- > x=no"}, all)
	})
}

func TestG8APanicInASignalFunctionCountsAsAChangeWorthOne(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		acc, snap := judged(t, s, streams, collect.Options{}, func(object.Object, object.Object) bool { panic("a bug") })
		s.Touch("as", "x", 1)
		assert.True(t, signalled(acc))
		assert.True(t, update(t, acc, snap).Changed)
		s.Touch("as", "x", 2)
		assert.True(t, signalled(acc), "the watch goes on")
	})
}

func TestG11ASignalFunctionMayUseTheAccumulatorSinceNoLockIsHeld(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var acc *Accumulator
		var seen []bool
		signal := func(object.Object, object.Object) bool {
			var snap one
			seen = append(seen, update(t, acc, &snap).Changed)
			acc.Status()
			return true
		}
		acc, _ = judged(t, s, streams, collect.Options{}, signal)
		s.Touch("as", "x", 1)
		synctest.Wait()
		sim.NewClient(s, streams).Put("as", sim.Thing("y"), 0)
		synctest.Wait()
		assert.Equal(t, []bool{true, true}, seen)
	})
}

func TestG11ATransformMayUseTheAccumulatorSinceNoLockIsHeld(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var acc *Accumulator
		q := sim.Query("A", "as")
		q.Transform = &object.Transform{Do: func(object.Object) error {
			if acc != nil {
				acc.Status()
				// The watch and the own write may transform at the same time.
				_, err := acc.Update(context.Background(), &one{}, nil)
				assert.NoError(t, err)
			}
			return nil
		}}
		acc = watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		s.Create("as", sim.Thing("x"))
		sim.NewClient(s, streams).Put("as", sim.Thing("y"), 0)
		synctest.Wait()
		var snap one
		_, err := acc.Update(t.Context(), &snap, nil)
		require.NoError(t, err)
		assert.Len(t, snap.A, 2)
	})
}

func TestQuietOwnWritesAreNotJudgedAndForeignOnesMeanwhileAre(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := &asked{}
		acc, _ := judged(t, s, streams, collect.Options{QuietOwnWrites: true}, a.signal)
		sim.NewClient(s, streams).Put("as", sim.Thing("own"), second)
		assert.False(t, signalled(acc))
		assert.Empty(t, a.taken())
		for in, loud := range map[string]bool{"yes": false, "no": true} {
			w := streams.Begin(sim.Resource("as"), object.Key{Namespace: "ns", Name: "x"})
			x := sim.Thing("x", "in", in)
			x.SetUID("uid-1")
			s.Create("as", x)
			synctest.Wait()
			assert.Empty(t, a.taken(), "not known yet whose it is")
			w.Abandon()
			assert.Equal(t, loud, signalled(acc), in)
			assert.Len(t, a.taken(), 1)
			update(t, acc, &one{})
			x.SetLabels(map[string]string{"in": "yes"})
			s.Create("as", x)
			signalled(acc)
			update(t, acc, &one{})
			a.taken()
		}
	})
}

func TestAnObjectThatATransformRejectsIsWorthASignal(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Signal = func(object.Object, object.Object) bool { return false }
		q.Transform = &object.Transform{Do: func(o object.Object) error {
			if n, _, _ := unstructured.NestedInt64(o.(*unstructured.Unstructured).Object, "spec", "n"); n == 1 {
				panic("a bug")
			}
			return nil
		}}
		s.Create("as", sim.Thing("x"))
		acc := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(acc))
		update(t, acc, &one{})
		for n, loud := range []bool{false, true, true, false} {
			s.Touch("as", "x", n)
			assert.Equal(t, loud, signalled(acc), n)
			update(t, acc, &one{})
		}
	})
}

func TestAChangeThatWasJudgedIsNotJudgedAgainWhenAnOwnWriteLands(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := &asked{}
		acc, _ := judged(t, s, streams, collect.Options{}, a.signal)
		w := streams.Begin(sim.Resource("as"), object.Key{Namespace: "ns", Name: "x"})
		s.Touch("as", "x", 1)
		synctest.Wait()
		w.Abandon()
		assert.False(t, signalled(acc))
		assert.Len(t, a.taken(), 1)
	})
}
