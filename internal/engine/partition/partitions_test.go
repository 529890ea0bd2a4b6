package partition

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// byLabel reads keys from a label: k=a.b, or "every".
func byLabel(o object.Object) []string {
	switch k := o.GetLabels()["k"]; k {
	case "":
		return nil
	case "panic":
		panic("a bug")
	case "empty":
		return []string{""}
	case "every":
		return []string{query.EveryPartition}
	default:
		return strings.Split(k, ".")
	}
}

func keyed(name, resource string) query.Query {
	q := sim.Query(name, resource)
	q.Key = byLabel
	return q
}

func partitioned(t *testing.T, streams *streamset.Set, o Options, queries ...query.Query) *Partitions {
	t.Helper()
	p, err := Start(t.Context(), streams, reflect.TypeFor[two](), queries, o)
	require.NoError(t, err)
	return p
}

// turn takes the next turn once all goroutines are idle, nil if there is none.
func turn(t *testing.T, p *Partitions) *Turn {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
	defer cancel()
	turn, err := p.Next(ctx)
	if err != nil {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	return turn
}

// eachTurn takes and ends all turns.
func eachTurn(t *testing.T, p *Partitions, do func(*Turn)) {
	t.Helper()
	n := 0
	for next := turn(t, p); next != nil; next = turn(t, p) {
		n++
		require.LessOrEqual(t, n, 5000, "the turns have no end: now that of %q", next.Key)
		do(next)
		next.Done(nil)
	}
}

// turns takes and ends all turns: "key: A's names / B's names".
func turns(t *testing.T, p *Partitions) (all []string) {
	t.Helper()
	eachTurn(t, p, func(next *Turn) { all = append(all, text(next)) })
	return all
}

func text(t *Turn) string {
	snap := t.Snapshot.(*two)
	s := t.Key + ": " + strings.Join(sim.Names(snap.A), " ") + " / " + strings.Join(sim.Names(snap.B), " ")
	if t.Gone {
		s += " gone"
	}
	return s
}

// abc runs a test on partitions a and b after their first turns: x and y in a, y in b, and c, of
// another kind, in both.
func abc(t *testing.T, o Options, f func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions)) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "k", "a"))
		s.Create("as", sim.Thing("y", "k", "a.b"))
		s.Create("as", sim.Thing("none"))
		s.Create("bs", sim.Thing("c"))
		p := partitioned(t, streams, o, keyed("A", "as"), sim.Query("B", "bs"))
		require.Equal(t, []string{"a: x y / c", "b: y / c"}, turns(t, p))
		f(t, s, streams, p)
	})
}

func TestG1NoTurnBeforeAllQueriesAreComplete(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x", "k", "a"))
				s.Create("bs", sim.Thing("y", "k", "a"))
				s.ListDelay = func(resource string) time.Duration {
					if resource == "bs" {
						return 20 * second
					}
					return 0
				}
				s.ListAnswer = s.ListDelay
				p := partitioned(t, streams, Options{}, keyed("A", "as"), keyed("B", "bs"))
				sim.After(second)
				assert.Nil(t, turn(t, p))
				assert.Error(t, p.Ready())
				sim.After(time.Minute)
				assert.Equal(t, []string{"a: x / y"}, turns(t, p))
				assert.NoError(t, p.Ready())
			})
		})
	}
}

func TestAnObjectThatMovesActivatesBothKeysAndNoOther(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Create("as", sim.Thing("z", "k", "c"))
		assert.Equal(t, []string{"c: z / c"}, turns(t, p))
		s.Relabel("x", "k", "b")
		assert.Equal(t, []string{"a: y / c", "b: x y / c"}, turns(t, p))
		s.Relabel("x")
		assert.Equal(t, []string{"b: y / c"}, turns(t, p), "an object may belong to none")
		s.Relabel("x", "k", "every")
		assert.Equal(t, []string{"a: x y / c", "b: x y / c", "c: x z / c"}, turns(t, p))
		s.Touch("as", "none", 1)
		assert.Empty(t, turns(t, p))
		s.Relabel("x", "k", "c")
		assert.Equal(t, []string{"a: y / c", "b: y / c", "c: x z / c"}, turns(t, p))
		s.Create("bs", sim.Thing("d"))
		assert.Equal(t, []string{"a: y / c d", "b: y / c d", "c: x z / c d"}, turns(t, p))
		assert.Equal(t, []string{"a", "b", "c"}, p.Keys())
	})
}

func TestToActivateAnEmptyListOfKeysIsToActivateNone(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, _ *sim.Server, _ *streamset.Set, p *Partitions) {
		p.Trigger()
		p.Trigger([]string(nil)...)
		assert.Empty(t, turns(t, p))
		p.TriggerAll()
		assert.Equal(t, []string{"a: x y / c", "b: y / c"}, turns(t, p))
	})
}

func TestG6AnEmptiedPartitionIsHandedOutOnceMoreEmptyUntilThatIsDoneAndThenForgotten(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Remove("as", "y")
		assert.Equal(t, []string{"a: x / c"}, turns(t, p)[:1])
		assert.Equal(t, []string{"a"}, p.Keys())
		s.Remove("as", "x")
		for attempt := 1; attempt < 4; attempt++ {
			gone := turn(t, p)
			require.NotNil(t, gone)
			assert.Equal(t, "a:  /  gone", text(gone))
			assert.NotNil(t, gone.Snapshot.(*two).A, "an empty slice")
			assert.Equal(t, attempt, gone.Attempt)
			assert.Len(t, gone.Differences, map[bool]int{true: 2}[attempt == 1], "x and c go, once")
			gone.Done(errors.New("oops"))
			assert.Nil(t, turn(t, p))
			sim.After(time.Minute)
		}
		assert.Equal(t, []string{"a:  /  gone"}, turns(t, p))
		assert.Empty(t, p.scheduler.parts)
		assert.Zero(t, busyKeys(p), "also its attempts")
		s.Touch("bs", "c", 1)
		assert.Empty(t, turns(t, p), "what all have makes no partition")
		s.Create("as", sim.Thing("x", "k", "a"))
		again := turn(t, p)
		assert.Equal(t, "a: x / c", text(again))
		assert.Len(t, again.Differences, 2)
	})
}

func TestG7WhatCameAndWentUnseenIsNoTurn(t *testing.T) {
	abc(t, Options{Options: collect.Options{Pace: collect.Pace{Interval: second}}}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Create("as", sim.Thing("z", "k", "a"))
		s.Create("as", sim.Thing("v", "k", "new"))
		assert.Nil(t, turn(t, p), "not before the signal, and yet taken in")
		assert.Equal(t, []string{"a", "b", "new"}, p.Keys())
		s.Remove("as", "z")
		s.Remove("as", "v")
		sim.After(time.Minute)
		assert.Empty(t, turns(t, p))
		assert.Equal(t, []string{"a", "b"}, p.Keys())
	})
}

func TestG10ARefreshConvertsWhatChangedAndKeepsAllPointersOfTheRest(t *testing.T) {
	shown := 0
	o := Options{Options: collect.Options{Witness: sim.Witness(func() { shown++ })}}
	abc(t, o, func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions) {
		p.TriggerAll()
		a := turn(t, p)
		b := turn(t, p)
		a.Done(nil)
		b.Done(nil)
		before, other := a.Snapshot.(*two), b.Snapshot.(*two)
		assert.Same(t, &before.B[0], &other.B[0], "one slice for all that have nothing of their own")
		shown = 0
		s.Touch("as", "x", 1)
		a = turn(t, p)
		now := a.Snapshot.(*two)
		assert.Equal(t, 1, shown)
		assert.NotSame(t, before.A[0], now.A[0])
		assert.Same(t, before.A[1], now.A[1])
		assert.Same(t, &before.B[0], &now.B[0])
		assert.Len(t, a.Differences, 1)
		a.Done(nil)
		p.Trigger("b")
		again := turn(t, p)
		assert.Same(t, &other.A[0], &again.Snapshot.(*two).A[0])
		assert.Empty(t, again.Differences)
		assert.Equal(t, 1, shown)
		assert.True(t, streams.Shares(now.A[0]))
	})
}

// TestG10ATurnCostsNothingForObjectsOfOtherPartitions measures the allocated memory: a slice of
// all objects would take 40 kB.
func TestG10ATurnCostsNothingForObjectsOfOtherPartitions(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for i := range 5_000 {
			s.Create("as", sim.Thing(fmt.Sprint("o", i), "k", fmt.Sprint("k", i/5)))
		}
		p := partitioned(t, streams, Options{}, keyed("A", "as"), sim.Query("B", "bs"))
		synctest.Wait()
		for range 1_000 {
			next, err := p.Next(t.Context())
			require.NoError(t, err)
			next.Done(nil)
		}
		least := uint64(1 << 40)
		for i := range 20 {
			s.Touch("as", "o7", i)
			synctest.Wait()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			next, err := p.Next(t.Context())
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			assert.Len(t, next.Snapshot.(*two).A, 5)
			next.Done(nil)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		assert.Less(t, least, uint64(20_000))
	})
}
