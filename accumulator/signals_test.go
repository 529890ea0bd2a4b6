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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator/stream"
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
func churn(s *sim, every time.Duration, times int) {
	for i := range times {
		s.touch("as", "x", i)
		after(every)
	}
}

func TestG3AFirstChangeAfterQuietIsSignalledAtOnceThenOnePerInterval(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{Pace: Pace{Interval: 10 * second}}, simQuery("A", "as"))
		assert.Len(t, signals(a, 30*second), 1, "the first snapshot")
		go churn(s, second, 25)
		assert.Equal(t, []time.Duration{0, 10 * second, 20 * second, 30 * second}, signals(a, time.Minute))
	})
}

func TestG2ConstantChurnIsNeverStarvedOfSignals(t *testing.T) {
	for name, pace := range map[string]Pace{
		"interval": {Interval: 5 * second},
		"debounce": {Interval: second, Quiet: 2 * second, QuietMax: 5 * second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("x"))
				a := watching(t, streams, Options{Pace: pace}, simQuery("A", "as"))
				signals(a, 30*second)
				go churn(s, second, 60)
				assert.InDelta(t, 12, len(signals(a, time.Minute)), 2)
				signals(a, 10*second)
			})
		})
	}
}

func TestDebounceWaitsForQuiet(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{Pace: Pace{Quiet: 3 * second, QuietMax: time.Minute}}, simQuery("A", "as"))
		signals(a, 30*second)
		go churn(s, second, 5)
		assert.Equal(t, []time.Duration{7 * second}, signals(a, time.Minute))
	})
}

func TestNoSignalForWhatWasConsumedAlready(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{Pace: Pace{Interval: 10 * second}}, simQuery("A", "as"))
		var snap one
		require.True(t, signalled(a))
		update(t, a, &snap)
		s.touch("as", "x", 1)
		synctest.Wait()
		require.True(t, update(t, a, &snap).Changed, "read before it is signalled")
		assert.Empty(t, signals(a, time.Minute))
	})
}

func TestG4AnOwnWriteSignalsOnceAndItsEchoNever(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		signals(a, second)
		s.delay = func(string) time.Duration { return 10 * second }
		go own{s, streams}.put("as", thing("x"), 0)
		assert.Equal(t, []time.Duration{0}, signals(a, time.Minute))
	})
}

func TestQuietOwnWritesDoNotSignalButAreInTheSnapshot(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{QuietOwnWrites: true}, simQuery("A", "as"))
		signals(a, second)
		s.delay = func(string) time.Duration { return 10 * second }
		own{s, streams}.put("as", thing("x"), 0)
		assert.Empty(t, signals(a, time.Minute))
		var snap one
		r := update(t, a, &snap)
		assert.True(t, r.Changed)
		assert.Len(t, r.Differences, 1)
		assert.Len(t, snap.A, 1)
		s.touch("as", "x", 1)
		assert.Len(t, signals(a, time.Minute), 1, "others' writes do")
	})
}

func TestEqualQueriesShareOneListAndOneWatch(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		for range 5 {
			watching(t, streams, Options{}, simQuery("A", "as"))
		}
		synctest.Wait()
		late := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(late))
		var snap one
		assert.Len(t, update(t, late, &snap).Differences, 1, "a late subscriber starts from the store")
		assert.Equal(t, 1, s.lists["as"])
		assert.Equal(t, 1, s.watches["as"])
		other := simQuery("A", "as")
		other.Labels = labels.SelectorFromSet(labels.Set{"a": "b"})
		watching(t, streams, Options{}, other)
		synctest.Wait()
		assert.Equal(t, 2, s.lists["as"], "another selector is another stream")
	})
}

func TestTheLastSubscriberEndsTheStreamAfterItsGrace(t *testing.T) {
	bubble(t, stream.Config{Grace: time.Minute}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		a.Close()
		after(30 * second)
		b := watching(t, streams, Options{}, simQuery("A", "as"))
		after(2 * time.Minute)
		assert.Equal(t, 1, s.lists["as"], "it was still there")
		b.Close()
		after(50 * second)
		watching(t, streams, Options{}, simQuery("A", "as")).Close()
		after(50 * second) // the grace of b is over, that of the last query is not
		watching(t, streams, Options{}, simQuery("A", "as")).Close()
		assert.Equal(t, 1, s.lists["as"], "each who leaves gives it a minute")
		after(59 * second)
		assert.Equal(t, 1, streams.Len())
		after(2 * second)
		synctest.Wait()
		assert.Zero(t, streams.Len())
		watching(t, streams, Options{}, simQuery("A", "as")).Close()
		streams.Close()
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Empty(t, s.cuts, "Close waits for nobody's grace")
	})
}

func TestAStreamWithoutGraceEndsWithItsLastSubscriber(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		r, err := Open(t.Context(), streams, simQuery("R", "as"))
		require.NoError(t, err)
		synctest.Wait()
		a.Close()
		synctest.Wait()
		assert.Equal(t, 1, streams.Len(), "somebody is left")
		began := time.Now()
		r.Close()
		synctest.Wait()
		assert.Zero(t, streams.Len())
		assert.Empty(t, s.cuts)
		assert.Zero(t, time.Since(began))
	})
}

func TestAnOptionalKindThatIsNotServedIsAbsentAndJoins(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("bs", thing("z"))
		var served atomic.Bool
		q := simQuery("B", "bs")
		q.Optional = true
		q.Resolve = func(context.Context) (Resource, error) {
			if !served.Load() {
				return Resource{}, fmt.Errorf("bs: %w", ErrNotServed)
			}
			return simResource("bs"), nil
		}
		a := watching(t, streams, Options{}, simQuery("A", "as"), q)
		require.True(t, signalled(a))
		var snap two
		update(t, a, &snap)
		assert.NotNil(t, snap.A)
		assert.Nil(t, snap.B, "absent, not empty")
		assert.Equal(t, Missing, a.Status()[1].State)
		served.Store(true)
		after(3 * second)
		require.True(t, signalled(a))
		r := update(t, a, &snap)
		assert.Equal(t, []string{"z"}, names(snap.B))
		assert.Len(t, r.Differences, 1)
		assert.Nil(t, r.Differences[0].Old)
	})
}

func TestAnOutageOfDiscoveryHoldsTheFirstSignalAlsoForAnOptionalKind(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		var up atomic.Bool
		q := simQuery("B", "bs")
		q.Optional = true
		q.Resolve = func(context.Context) (Resource, error) {
			if !up.Load() {
				return Resource{}, errors.New("discovery is down")
			}
			return simResource("bs"), nil
		}
		a := watching(t, streams, Options{}, simQuery("A", "as"), q)
		after(time.Minute)
		assert.False(t, signalled(a))
		assert.ErrorContains(t, a.Ready(), "discovery is down")
		assert.False(t, update(t, a, &two{}).Complete)
		up.Store(true)
		after(3 * second)
		assert.True(t, signalled(a))
	})
}

func TestAnOptionalKindThatStaysForbiddenIsAbsentAndHeals(t *testing.T) {
	for _, optional := range []bool{true, false} {
		t.Run(fmt.Sprint("optional ", optional), func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("bs", thing("z"))
				var allowed atomic.Bool
				s.failing(func(_, resource string) error {
					if resource == "bs" && !allowed.Load() {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "bs"}, "", errors.New("no"))
					}
					return nil
				})
				q := simQuery("B", "bs")
				q.Optional = optional
				a := watching(t, streams, Options{}, simQuery("A", "as"), q)
				after(20 * second)
				require.Equal(t, optional, signalled(a))
				assert.Equal(t, Forbidden, a.Status()[1].State)
				var snap two
				update(t, a, &snap)
				assert.Nil(t, snap.B)
				allowed.Store(true)
				after(time.Minute)
				require.True(t, signalled(a))
				update(t, a, &snap)
				assert.Len(t, snap.B, 1)
			})
		})
	}
}

func TestAPredicateIsAskedOncePerChangeAndStaysInForce(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		s.create("as", thing("y"))
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		asked := map[string]int{}
		notX := &Judgement{Predicate: func(u *unstructured.Unstructured) bool {
			asked[u.GetName()]++
			return u.GetName() != "x"
		}}
		var snap one
		_, err := a.Update(t.Context(), &snap, notX)
		require.NoError(t, err)
		assert.Equal(t, []string{"y"}, names(snap.A))
		s.touch("as", "x", 1)
		synctest.Wait()
		r, err := a.Update(t.Context(), &snap, notX)
		require.NoError(t, err)
		assert.False(t, r.Changed, "a change that is left out changes nothing")
		s.touch("as", "x", 2)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"y"}, names(snap.A), "in force for a plain Update as well")
		assert.Equal(t, map[string]int{"x": 3, "y": 1}, asked)
		r, err = a.Update(t.Context(), &snap, &Judgement{})
		require.NoError(t, err)
		assert.Equal(t, []string{"x", "y"}, names(snap.A), "another one judges all again")
		require.Len(t, r.Differences, 1)
		assert.Nil(t, r.Differences[0].Old)
		r, err = a.Update(t.Context(), &snap, notX)
		require.NoError(t, err)
		require.Len(t, r.Differences, 1)
		assert.Nil(t, r.Differences[0].New, "what no longer passes is a delete")
	})
}

func TestAQuietOwnWriteIsQuietAlsoWhenItsEventOvertakesTheAnswer(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{QuietOwnWrites: true}, simQuery("A", "as"))
		signals(a, second)
		own{s, streams}.put("as", thing("x"), 10*second)
		synctest.Wait()
		assert.Empty(t, a.Changed())
		var snap one
		assert.True(t, update(t, a, &snap).Changed)
		require.True(t, own{s, streams}.delete("as", "x", 10*second, false))
		synctest.Wait()
		assert.Empty(t, a.Changed())
		assert.True(t, update(t, a, &snap).Changed)
		// A foreign write of the same object in between is not quiet.
		key := Key{Namespace: "ns", Name: "y"}
		w := streams.Begin(simResource("as"), key)
		s.create("as", thing("y"))
		synctest.Wait()
		assert.Empty(t, a.Changed(), "not known yet whose it is")
		w.Abandon()
		assert.True(t, signalled(a))
		assert.Zero(t, a.fields[0].parts[0].sub.Stage().Held().Flights)
	})
}

func TestAKindThatJoinsAStreamOfOthersIsSignalled(t *testing.T) {
	for _, failure := range []error{ErrNotServed, errors.New("discovery is down")} {
		t.Run(failure.Error(), func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("bs", thing("z"))
				watching(t, streams, Options{}, simQuery("B", "bs"))
				var found atomic.Bool
				q := simQuery("B", "bs")
				q.Optional = true
				q.Resolve = func(context.Context) (Resource, error) {
					if !found.Load() {
						return Resource{}, fmt.Errorf("bs: %w", failure)
					}
					return simResource("bs"), nil
				}
				a := watching(t, streams, Options{}, simQuery("A", "as"), q)
				var snap two
				if signalled(a) {
					update(t, a, &snap)
				}
				found.Store(true)
				after(10 * second)
				require.True(t, signalled(a))
				update(t, a, &snap)
				assert.Len(t, snap.B, 1)
			})
		})
	}
}
