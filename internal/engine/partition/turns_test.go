package partition

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestG4AnOwnWriteIsInTheNextTurnAndActivatesItsKeysUnlessItIsQuiet(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		t.Run(fmt.Sprint("quiet ", quiet), func(t *testing.T) {
			abc(t, Options{Options: collect.Options{QuietOwnWrites: quiet}}, func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions) {
				s.Mu.Lock()
				s.Delay = func(string) time.Duration { return time.Minute }
				s.Mu.Unlock()
				sim.NewClient(s, streams).Put("as", s.Relabelled("x", "k", "b"), 0)
				if quiet {
					assert.Empty(t, turns(t, p))
					p.Trigger("a", "b", "nobody")
				}
				assert.Equal(t, []string{"a: y / c", "b: x y / c"}, turns(t, p))
				sim.After(10 * time.Minute)
				assert.Empty(t, turns(t, p), "the echo")
				s.Touch("as", "x", 7)
				sim.After(10 * time.Minute)
				assert.Equal(t, []string{"b: x y / c"}, turns(t, p), "others are heard")
				sim.NewClient(s, streams).Delete("as", "y", 0, true)
				if quiet {
					assert.Equal(t, []string{"a:  /  gone"}, turns(t, p), "that is owed in any case")
					p.TriggerAll()
					assert.Equal(t, []string{"b: x / c"}, turns(t, p))
				} else {
					assert.Equal(t, []string{"a:  /  gone", "b: x / c"}, turns(t, p))
				}
			})
		})
	}
}

func TestG4AKeyWhoseTurnEndsWhileAnotherWorkerTakesThingsInHasItsOwnWritesInTheNextOne(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, streams *streamset.Set, _ *Partitions) {
		meanwhile := func() {}
		q := keyed("A", "as")
		q.Key = func(o object.Object) []string {
			meanwhile() // it runs while Next is at work, without locks
			return byLabel(o)
		}
		p := partitioned(t, streams, Options{}, q)
		turns(t, p)
		p.Trigger("a")
		held := turn(t, p)
		p.Trigger("a")
		meanwhile = func() {
			meanwhile = func() {}
			sim.NewClient(s, streams).Put("as", s.Relabelled("x", "k", "b"), 0)
			held.Done(nil)
		}
		s.Create("as", sim.Thing("none of them"))
		next := turn(t, p)
		assert.Equal(t, "a: y / ", text(next))
	})
}

func TestG10WhatPointsIntoASliceOfATurnIsShared(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		type values struct{ A []unstructured.Unstructured }
		for _, u := range []*unstructured.Unstructured{sim.Thing("x", "k", "a"), sim.Thing("y", "k", "every"), sim.Thing("z", "k", "b")} {
			s.Create("as", u)
		}
		p, err := Start(t.Context(), streams, reflect.TypeFor[values](), []query.Query{keyed("A", "as")}, Options{})
		require.NoError(t, err)
		defer p.Close()
		for next := turn(t, p); next != nil; next = turn(t, p) {
			snap := next.Snapshot.(*values)
			for i := range snap.A {
				assert.True(t, streams.Shares(&snap.A[i]), "%s %s", next.Key, snap.A[i].GetName())
				mine := snap.A[i]
				assert.False(t, streams.Shares(&mine))
			}
			next.Done(nil)
		}
	})
}

func TestG3WhatWaitsIsBoundedByTheObjectsThereAre(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Touch("as", "x", 1)
		for i := range 400 {
			name := fmt.Sprint("n", i)
			s.Create("as", sim.Thing(name, "k", "a."+name))
			synctest.Wait()
			require.NoError(t, p.Refresh(t.Context()))
			if i%2 == 0 {
				p.scheduler.release(time.Now())
			}
			s.Remove("as", name)
			synctest.Wait()
			require.NoError(t, p.Refresh(t.Context()))
		}
		assert.Len(t, p.scheduler.parts, 2)
		assert.Len(t, p.scheduler.parts["a"].shares[0].dirty, 1)
		assert.False(t, p.scheduler.agenda.Waiting())
		assert.LessOrEqual(t, busyKeys(p), 2)
		assert.Equal(t, []string{"a: x y / c"}, turns(t, p))
		assert.Zero(t, busyKeys(p))
	})
}

func TestAKeyIsHeldByOneAndAMispairedDoneNeitherForgetsNorDoublesIt(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Touch("as", "x", 1)
		first := turn(t, p)
		require.Equal(t, "a", first.Key)
		s.Touch("as", "x", 2)
		p.Trigger("a")
		assert.Nil(t, turn(t, p), "it is held")
		first.Done(nil)
		second := turn(t, p)
		require.NotNil(t, second, "what came meanwhile is not forgotten")
		first.Done(nil)
		first.Done(errors.New("late"))
		s.Touch("as", "x", 3)
		assert.Nil(t, turn(t, p), "it is another's")
		second.Done(nil)
		third := turn(t, p)
		require.NotNil(t, third)
		assert.Equal(t, 1, third.Attempt)
		third.Done(nil)
		second.Done(errors.New("late"))
		sim.After(time.Hour)
		assert.Empty(t, turns(t, p))
	})
}

func TestAnErrorBacksItsKeyOffHoweverMuchChangesAndHoldsNobodyElseUp(t *testing.T) {
	abc(t, Options{Backoff: partBackoff}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		start := time.Now()
		var at []time.Duration
		for i := range 400 {
			s.Touch("as", "y", i)
			for next := turn(t, p); next != nil; next = turn(t, p) {
				if next.Key == "b" {
					next.Done(nil)
					continue
				}
				at = append(at, time.Since(start).Round(10*time.Millisecond))
				assert.Equal(t, len(at), next.Attempt)
				next.Done(errors.New("oops"))
			}
			sim.After(10 * time.Millisecond)
		}
		ms := time.Millisecond
		assert.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 2500 * ms, 3500 * ms}, at)
	})
}

func TestG8AKeyFunctionThatPanicsLeavesOutThatObjectWhereItWasUntilItsNextVersion(t *testing.T) {
	var told []string
	o := Options{Options: collect.Options{Invalid: func(i tables.Invalid) { told = append(told, i.Object.GetName()+": "+i.Err.Error()) }}}
	abc(t, o, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Relabel("x", "k", "panic")
		s.Relabel("none", "k", "panic")
		a := turn(t, p)
		assert.Equal(t, "a: y / c", text(a))
		require.Len(t, a.Invalid, 1)
		assert.Equal(t, "x", a.Invalid[0].Object.GetName())
		assert.ErrorContains(t, a.Invalid[0].Err, "the key function")
		a.Done(nil)
		assert.Len(t, told, 2, "also what never had a key")
		assert.Equal(t, 2, p.Status()[0].Invalid)
		s.Remove("as", "y")
		for _, text := range turns(t, p) {
			assert.NotContains(t, text, "a:  /  gone", "it is there, whatever is wrong with it")
		}
		s.Relabel("x", "k", "a")
		s.Relabel("none")
		s.Create("as", sim.Thing("y", "k", "a.b"))
		assert.Equal(t, []string{"a: x y / c", "b: y / c"}, turns(t, p))
		assert.Zero(t, p.Status()[0].Invalid)
		s.Relabel("y", "k", "panic")
		turns(t, p)
		s.Remove("as", "y")
		assert.Contains(t, turns(t, p), "b:  /  gone")
	})
}

// TestAnEmptyKeyIsNone: a key function may return a field's value, whether it is set or not.
func TestAnEmptyKeyIsNone(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Relabel("x", "k", "empty")
		assert.Equal(t, []string{"a: y / c"}, turns(t, p))
		s.Relabel("y", "k", ".b")
		assert.Equal(t, []string{"a:  /  gone", "b: y / c"}, turns(t, p))
		assert.Zero(t, p.Status()[0].Invalid)
	})
}

func TestAChangeThatIsNotWorthASignalActivatesNothingAndIsInTheNextTurn(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := keyed("A", "as")
		judge := make(chan bool)
		q.Signal = func(old, current object.Object) bool { return <-judge }
		s.Create("as", sim.Thing("x", "k", "a"))
		s.Create("as", sim.Thing("y", "k", "b"))
		p := partitioned(t, streams, Options{}, q, sim.Query("B", "bs"))
		require.Len(t, turns(t, p), 2)
		s.Touch("as", "x", 1)
		judge <- false
		assert.Empty(t, turns(t, p))
		s.Relabel("x", "k", "c")
		assert.Equal(t, []string{"a:  /  gone"}, turns(t, p), "it is taken in, and nobody knows whether it is worth anything to c")
		judge <- true
		assert.Equal(t, []string{"c: x / "}, turns(t, p))
		s.Relabel("y", "k", "b.c")
		assert.Empty(t, turns(t, p))
		p.Trigger("c")
		assert.Equal(t, []string{"c: x y / "}, turns(t, p))
		judge <- true
		assert.Equal(t, []string{"b: y / "}, turns(t, p), "c has had it")
	})
}

func TestNextEndsWithItsContextAndWithTheWatchAndLosesNoKeyThereby(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan error)
		for range 3 {
			go func() {
				_, err := p.Next(ctx)
				ends <- err
			}()
		}
		synctest.Wait()
		s.Touch("as", "y", 1)
		cancel()
		held := 0
		for range 3 {
			if err := <-ends; err != nil {
				assert.ErrorIs(t, err, context.Canceled)
			} else {
				held++
			}
		}
		assert.Len(t, turns(t, p), 2-held)
		go func() {
			_, err := p.Next(context.Background())
			ends <- err
		}()
		synctest.Wait()
		p.Close()
		assert.ErrorIs(t, <-ends, stream.ErrClosed)
		assert.ErrorIs(t, p.Err(), stream.ErrClosed)
	})
}

func TestPartitionReportsWhatCannotBe(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for text, try := range map[string]func() (*Partitions, error){
			"no query has a key": func() (*Partitions, error) {
				return Start(t.Context(), streams, reflect.TypeFor[one](), []query.Query{sim.Query("A", "as")}, Options{})
			},
			"no field B": func() (*Partitions, error) {
				return Start(t.Context(), streams, reflect.TypeFor[one](), []query.Query{keyed("B", "as")}, Options{})
			},
			"backoff": func() (*Partitions, error) {
				o := Options{}
				o.Backoff.First = -1
				return Start(t.Context(), streams, reflect.TypeFor[one](), []query.Query{keyed("A", "as")}, o)
			},
		} {
			_, err := try()
			assert.ErrorContains(t, err, text)
		}
	})
}

// TestG11ManyWorkersHoldEachKeyOnceAndMissNothing is for the race detector.
func TestG11ManyWorkersHoldEachKeyOnceAndMissNothing(t *testing.T) {
	abc(t, Options{Backoff: partBackoff}, func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		held, last := map[string]bool{}, map[string]string{}
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for n := 0; ; n++ {
					next, err := p.Next(ctx)
					if err != nil {
						return
					}
					mu.Lock()
					assert.False(t, held[next.Key], next.Key)
					held[next.Key], last[next.Key] = true, text(next)
					mu.Unlock()
					sim.After(time.Duration(n%3) * time.Millisecond)
					mu.Lock()
					held[next.Key] = false
					mu.Unlock()
					if next.Done(nil); n%5 == 0 {
						next.Done(errors.New("again"))
					}
				}
			})
		}
		for i := range 300 {
			u := sim.Thing(fmt.Sprint("o", i%7), "k", []string{"a", "b", "c", "a.c", "every", "d"}[i%6])
			u.SetUID(types.UID(u.GetName()))
			if i%11 == 0 {
				s.Create("as", u)
			} else {
				sim.NewClient(s, streams).Put("as", u, 0)
			}
			sim.After(time.Duration(i%2) * time.Millisecond)
		}
		for i := range 7 {
			u := sim.Thing(fmt.Sprint("o", i), "k", "c")
			u.SetUID(types.UID(u.GetName()))
			sim.NewClient(s, streams).Put("as", u, 0)
		}
		sim.After(time.Hour)
		synctest.Wait()
		mu.Lock()
		assert.Equal(t, "a: x y / c", last["a"])
		assert.Equal(t, "b: y / c", last["b"])
		assert.Equal(t, "c: o0 o1 o2 o3 o4 o5 o6 / c", last["c"])
		assert.Equal(t, "d:  /  gone", last["d"])
		mu.Unlock()
		cancel()
		workers.Wait()
	})
}
