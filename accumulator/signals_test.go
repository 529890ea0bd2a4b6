package accumulator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/lister"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// signals waits for a time, and returns when signals came, in seconds since the call.
func signals(a *Accumulator, long time.Duration) (at []time.Duration) {
	start := time.Now()
	end := time.After(long)
	for {
		select {
		case _, open := <-a.Changed():
			if !open {
				return at
			}
			_, _ = a.Update(context.Background(), &one{}, nil)
			at = append(at, time.Since(start).Round(100*time.Millisecond))
		case <-end:
			return at
		}
	}
}

// churn changes an object several times, at an interval.
func churn(s *sim.Server, every time.Duration, times int) {
	for i := range times {
		s.Touch("as", "x", i)
		sim.After(every)
	}
}

func TestG3AFirstChangeAfterQuietIsSignalledAtOnceThenOnePerInterval(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{Pace: collect.Pace{Interval: 10 * second}}, sim.Query("A", "as"))
		assert.Len(t, signals(a, 30*second), 1, "the first snapshot")
		go churn(s, second, 25)
		assert.Equal(t, []time.Duration{0, 10 * second, 20 * second, 30 * second}, signals(a, time.Minute))
	})
}

func TestG2ConstantChurnIsNeverStarvedOfSignals(t *testing.T) {
	for name, pace := range map[string]collect.Pace{
		"interval": {Interval: 5 * second},
		"debounce": {Interval: second, Quiet: 2 * second, QuietMax: 5 * second},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{Pace: pace}, sim.Query("A", "as"))
				signals(a, 30*second)
				go churn(s, second, 60)
				assert.InDelta(t, 12, len(signals(a, time.Minute)), 2)
				signals(a, 10*second)
			})
		})
	}
}

func TestDebounceWaitsForQuiet(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{Pace: collect.Pace{Quiet: 3 * second, QuietMax: time.Minute}}, sim.Query("A", "as"))
		signals(a, 30*second)
		go churn(s, second, 5)
		assert.Equal(t, []time.Duration{7 * second}, signals(a, time.Minute))
	})
}

func TestNoSignalForWhatWasConsumedAlready(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{Pace: collect.Pace{Interval: 10 * second}}, sim.Query("A", "as"))
		var snap one
		require.True(t, signalled(a))
		update(t, a, &snap)
		s.Touch("as", "x", 1)
		synctest.Wait()
		require.True(t, update(t, a, &snap).Changed, "read before it is signalled")
		assert.Empty(t, signals(a, time.Minute))
	})
}

func TestG4AnOwnWriteSignalsOnceAndItsEchoNever(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		signals(a, second)
		s.Delay = func(string) time.Duration { return 10 * second }
		go sim.NewClient(s, streams).Put("as", sim.Thing("x"), 0)
		assert.Equal(t, []time.Duration{0}, signals(a, time.Minute))
	})
}

func TestQuietOwnWritesDoNotSignalButAreInTheSnapshot(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{QuietOwnWrites: true}, sim.Query("A", "as"))
		signals(a, second)
		s.Delay = func(string) time.Duration { return 10 * second }
		sim.NewClient(s, streams).Put("as", sim.Thing("x"), 0)
		assert.Empty(t, signals(a, time.Minute))
		var snap one
		r := update(t, a, &snap)
		assert.True(t, r.Changed)
		assert.Len(t, r.Differences, 1)
		assert.Len(t, snap.A, 1)
		s.Touch("as", "x", 1)
		assert.Len(t, signals(a, time.Minute), 1, "others' writes do")
	})
}

func TestEqualQueriesShareOneListAndOneWatch(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		for range 5 {
			watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		}
		synctest.Wait()
		late := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(late))
		var snap one
		assert.Len(t, update(t, late, &snap).Differences, 1, "a late subscriber starts from the store")
		assert.Equal(t, 1, s.Lists["as"])
		assert.Equal(t, 1, s.Watches["as"])
		other := sim.Query("A", "as")
		other.Labels = labels.SelectorFromSet(labels.Set{"a": "b"})
		watching(t, streams, collect.Options{}, other)
		synctest.Wait()
		assert.Equal(t, 2, s.Lists["as"], "another selector is another stream")
	})
}

func TestTheLastSubscriberEndsTheStreamAfterItsGrace(t *testing.T) {
	sim.Bubble(t, stream.Config{Grace: time.Minute}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		a.Close()
		sim.After(30 * second)
		b := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		sim.After(2 * time.Minute)
		assert.Equal(t, 1, s.Lists["as"], "it was still there")
		b.Close()
		sim.After(50 * second)
		watching(t, streams, collect.Options{}, sim.Query("A", "as")).Close()
		sim.After(50 * second) // the grace of b is over, that of the last query is not
		watching(t, streams, collect.Options{}, sim.Query("A", "as")).Close()
		assert.Equal(t, 1, s.Lists["as"], "each who leaves gives it a minute")
		sim.After(59 * second)
		assert.Equal(t, 1, streams.Len())
		sim.After(2 * second)
		synctest.Wait()
		assert.Zero(t, streams.Len())
		watching(t, streams, collect.Options{}, sim.Query("A", "as")).Close()
		streams.Close()
		synctest.Wait()
		s.Mu.Lock()
		defer s.Mu.Unlock()
		assert.Empty(t, s.Cuts, "Close waits for nobody's grace")
	})
}

func TestAStreamWithoutGraceEndsWithItsLastSubscriber(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		r, err := lister.Open(t.Context(), streams, sim.Query("R", "as"), collect.Options{})
		require.NoError(t, err)
		synctest.Wait()
		a.Close()
		synctest.Wait()
		assert.Equal(t, 1, streams.Len(), "somebody is left")
		began := time.Now()
		r.Close()
		synctest.Wait()
		assert.Zero(t, streams.Len())
		assert.Empty(t, s.Cuts)
		assert.Zero(t, time.Since(began))
	})
}

func TestAnOptionalKindThatIsNotServedIsAbsentAndJoins(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("bs", sim.Thing("z"))
		var served atomic.Bool
		q := sim.Query("B", "bs")
		q.Optional = true
		q.Resolve = func(context.Context) (object.Resource, error) {
			if !served.Load() {
				return object.Resource{}, fmt.Errorf("bs: %w", query.ErrNotServed)
			}
			return sim.Resource("bs"), nil
		}
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), q)
		require.True(t, signalled(a))
		var snap two
		update(t, a, &snap)
		assert.NotNil(t, snap.A)
		assert.Nil(t, snap.B, "absent, not empty")
		assert.Equal(t, stream.Missing, a.Status()[1].State)
		served.Store(true)
		sim.After(3 * second)
		require.True(t, signalled(a))
		r := update(t, a, &snap)
		assert.Equal(t, []string{"z"}, sim.Names(snap.B))
		assert.Len(t, r.Differences, 1)
		assert.Nil(t, r.Differences[0].Old)
	})
}

func TestAnOutageOfDiscoveryHoldsTheFirstSignalAlsoForAnOptionalKind(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var up atomic.Bool
		q := sim.Query("B", "bs")
		q.Optional = true
		q.Resolve = func(context.Context) (object.Resource, error) {
			if !up.Load() {
				return object.Resource{}, errors.New("discovery is down")
			}
			return sim.Resource("bs"), nil
		}
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), q)
		sim.After(time.Minute)
		assert.False(t, signalled(a))
		assert.ErrorContains(t, a.Ready(), "discovery is down")
		assert.False(t, update(t, a, &two{}).Complete)
		up.Store(true)
		sim.After(3 * second)
		assert.True(t, signalled(a))
	})
}

func TestAnOptionalKindThatStaysForbiddenIsAbsentAndHeals(t *testing.T) {
	for _, optional := range []bool{true, false} {
		t.Run(fmt.Sprint("optional ", optional), func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("bs", sim.Thing("z"))
				var allowed atomic.Bool
				s.Failing(func(_, resource string) error {
					if resource == "bs" && !allowed.Load() {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "bs"}, "", errors.New("no"))
					}
					return nil
				})
				q := sim.Query("B", "bs")
				q.Optional = optional
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), q)
				sim.After(20 * second)
				require.Equal(t, optional, signalled(a))
				assert.Equal(t, stream.Forbidden, a.Status()[1].State)
				var snap two
				update(t, a, &snap)
				assert.Nil(t, snap.B)
				allowed.Store(true)
				sim.After(time.Minute)
				require.True(t, signalled(a))
				update(t, a, &snap)
				assert.Len(t, snap.B, 1)
			})
		})
	}
}

// Somebody grants a right, renews a credential or installs a kind, and waits for the effect. The
// pauses between tries do not grow as they do where a server is down.
func TestWhatSomebodyHealsByHandIsThereWithinSeconds(t *testing.T) {
	r := schema.GroupResource{Resource: "bs"}
	for name, err := range map[string]error{
		"forbidden":    apierrors.NewForbidden(r, "", errors.New("no role")),
		"unauthorized": apierrors.NewUnauthorized("expired"),
		"not served":   apierrors.NewNotFound(r, ""),
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				var healed atomic.Bool
				s.Failing(func(_, resource string) error {
					if resource == "bs" && !healed.Load() {
						return err
					}
					return nil
				})
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
				sim.After(20 * second) // a backoff would now pause until 25 s or later
				require.False(t, signalled(a))
				healed.Store(true)
				sim.After(4 * second)
				assert.True(t, signalled(a))
			})
		})
	}
}

func TestAQuietOwnWriteIsQuietAlsoWhenItsEventOvertakesTheAnswer(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{QuietOwnWrites: true}, sim.Query("A", "as"))
		signals(a, second)
		sim.NewClient(s, streams).Put("as", sim.Thing("x"), 10*second)
		synctest.Wait()
		assert.Empty(t, a.Changed())
		var snap one
		assert.True(t, update(t, a, &snap).Changed)
		require.True(t, sim.NewClient(s, streams).Delete("as", "x", 10*second, false))
		synctest.Wait()
		assert.Empty(t, a.Changed())
		assert.True(t, update(t, a, &snap).Changed)
		// A foreign write of the same object in between is not quiet.
		key := object.Key{Namespace: "ns", Name: "y"}
		w := streams.Begin(sim.Resource("as"), key)
		s.Create("as", sim.Thing("y"))
		synctest.Wait()
		assert.Empty(t, a.Changed(), "not known yet whose it is")
		w.Abandon()
		assert.True(t, signalled(a))
		assert.Zero(t, listener(a, 0).Stage().Held().Flights)
	})
}

func TestAKindThatJoinsAStreamOfOthersIsSignalled(t *testing.T) {
	for _, failure := range []error{query.ErrNotServed, errors.New("discovery is down")} {
		t.Run(failure.Error(), func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("bs", sim.Thing("z"))
				watching(t, streams, collect.Options{}, sim.Query("B", "bs"))
				var found atomic.Bool
				q := sim.Query("B", "bs")
				q.Optional = true
				q.Resolve = func(context.Context) (object.Resource, error) {
					if !found.Load() {
						return object.Resource{}, fmt.Errorf("bs: %w", failure)
					}
					return sim.Resource("bs"), nil
				}
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), q)
				var snap two
				if signalled(a) {
					update(t, a, &snap)
				}
				found.Store(true)
				sim.After(10 * second)
				require.True(t, signalled(a))
				update(t, a, &snap)
				assert.Len(t, snap.B, 1)
			})
		})
	}
}
