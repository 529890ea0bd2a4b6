package accumulator

import (
	"context"
	"errors"
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
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// over is a query over namespaces.
func over(name, resource string, namespaces ...string) query.Query {
	q := sim.Query(name, resource)
	q.Namespaces = namespaces
	return q
}

// twoOverOne watches two queries over one namespace. A second one has objects, too.
func twoOverOne(t *testing.T, s *sim.Server, streams *streamset.Set) (*Accumulator, *two) {
	for _, resource := range []string{"as", "bs"} {
		s.Create(resource, sim.In("ns", resource+"1"))
		s.Create(resource, sim.In("other", resource+"2"))
	}
	a := watching(t, streams, collect.Options{}, over("A", "as", "ns"), over("B", "bs", "ns"))
	require.True(t, signalled(a))
	snap := &two{}
	require.Equal(t, []string{"+as1", "+bs1"}, told(update(t, a, snap)))
	return a, snap
}

// forbid makes the server refuse a resource in a namespace that is not watched yet.
func forbid(s *sim.Server, resource string) {
	s.Failing(func(_, of string) error {
		if of == resource {
			return apierrors.NewForbidden(schema.GroupResource{Resource: of}, "", errors.New("no role"))
		}
		return nil
	})
}

func TestG1QueriesThatAreReplacedTogetherChangeInOneSnapshot(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				a, snap := twoOverOne(t, s, streams)
				s.Mu.Lock()
				s.ListDelay = func(resource string) time.Duration {
					return map[string]time.Duration{"as": second, "bs": 20 * time.Second}[resource]
				}
				s.ListAnswer = s.ListDelay
				s.Mu.Unlock()
				require.NoError(t, a.Replace(t.Context(), over("A", "as", "other", "ns"), over("B", "bs", "other")))
				sim.After(5 * time.Second)
				r := update(t, a, snap)
				assert.Empty(t, told(r), "one of the new ones is complete, the other is not")
				for _, st := range a.Status() {
					assert.True(t, st.Changing, st.Name)
				}

				sim.NewClient(s, streams).Put("as", sim.In("ns", "own"), 0)
				sim.NewClient(s, streams).Put("as", sim.In("other", "later"), 0)
				assert.Equal(t, []string{"+own"}, told(update(t, a, snap)), "G4: the old ones go on")
				s.Remove("bs", "bs1")
				sim.After(time.Second)
				assert.Equal(t, []string{"-bs1"}, told(update(t, a, snap)))
				require.NoError(t, a.Ready())

				sim.After(2 * time.Minute)
				assert.True(t, signalled(a))
				r = update(t, a, snap)
				assert.Equal(t, []string{"+as2", "+later", "+bs2"}, told(r), "G7")
				assert.Equal(t, []string{"as1", "own", "as2", "later"}, sim.Names(snap.A))
				assert.Equal(t, []string{"bs2"}, sim.Names(snap.B))
				for _, st := range a.Status() {
					assert.False(t, st.Changing, st.Name)
				}
				assert.False(t, update(t, a, snap).Changed)
			})
		})
	}
}

func TestG1QueriesThatAreAddedTogetherAppearInOneSnapshot(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		s.Create("bs", sim.Thing("b"))
		s.Create("cs", sim.Thing("c"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		var snap three
		update(t, a, &snap)
		forbid(s, "cs")
		require.NoError(t, a.Add(t.Context(), sim.Query("B", "bs"), sim.Query("C", "cs")))
		sim.After(time.Minute)
		assert.False(t, update(t, a, &snap).Changed)
		assert.Nil(t, snap.B, "C has no list yet")
		require.Len(t, a.Status(), 3)
		assert.Equal(t, stream.Forbidden, a.Status()[2].State)
		assert.True(t, a.Status()[1].Changing && a.Status()[2].Changing && !a.Status()[0].Changing)
		assert.ErrorContains(t, a.Add(t.Context(), sim.Query("B", "bs")), "already")
		s.Failing(nil)
		sim.After(time.Minute)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+b", "+c"}, told(update(t, a, &snap)))
	})
}

// TestG8ARefusalThatPassesEmptiesNoFieldWhoseQueryIsReplaced: an optional query counts as empty
// when the server keeps refusing it. What is shown already waits for longer than what is not.
func TestG8ARefusalThatPassesEmptiesNoFieldWhoseQueryIsReplaced(t *testing.T) {
	for name, refusals := range map[string]int{"a moment": 5, "for good": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.In("ns", "x"))
				q := over("A", "as", "ns")
				q.Optional = true
				a := watching(t, streams, collect.Options{}, q)
				require.True(t, signalled(a))
				var snap two
				require.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
				var refused atomic.Int64
				s.Failing(func(_, of string) error {
					if of == "as" && refused.Add(1) <= int64(refusals) {
						return apierrors.NewForbidden(schema.GroupResource{Resource: of}, "", errors.New("no role"))
					}
					return nil
				})
				var err error
				q.Labels, err = labels.Parse("!none")
				require.NoError(t, err)
				require.NoError(t, a.Replace(t.Context(), q))
				for refused.Load() < 5 {
					assert.Empty(t, told(update(t, a, &snap)))
					assert.Equal(t, []string{"x"}, sim.Names(snap.A))
					sim.After(100 * time.Millisecond)
				}
				sim.After(5 * time.Minute)
				update(t, a, &snap)
				assert.False(t, a.Status()[0].Changing)
				assert.Equal(t, name == "for good", len(snap.A) == 0)
			})
		})
	}
}

func TestG8ASuccessorThatNeverCompletesLeavesTheOldQueryInUseAndSaysSo(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, snap := twoOverOne(t, s, streams)
		forbid(s, "cs")
		running := streams.Len()
		require.NoError(t, a.Replace(t.Context(), over("A", "as", "other"), sim.Query("B", "cs")))
		for range 10 {
			sim.After(time.Minute)
			s.Create("as", sim.In("ns", "more"))
			synctest.Wait()
			assert.Equal(t, []string{"+more"}, told(update(t, a, snap)))
			s.Remove("as", "more")
			sim.After(second)
			require.True(t, signalled(a))
			assert.Equal(t, []string{"-more"}, told(update(t, a, snap)))
			assert.Equal(t, []string{"bs1"}, sim.Names(snap.B))
		}
		require.NoError(t, a.Ready())
		assert.Equal(t, stream.Synced, a.Status()[0].State)
		assert.Equal(t, stream.Forbidden, a.Status()[1].State)
		assert.Contains(t, a.Status()[1].Error, "no role")

		require.NoError(t, a.Replace(t.Context(), over("B", "bs", "ns", "other")), "replaced again while it waits")
		sim.After(time.Minute)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"-as1", "+as2", "+bs2"}, told(update(t, a, snap)), "A has waited for B")

		require.NoError(t, a.Replace(t.Context(), over("A", "as", "ns"), sim.Query("B", "cs")))
		require.NoError(t, a.Remove(t.Context(), "B"), "removed while it waits")
		sim.After(time.Minute)
		require.True(t, signalled(a))
		assert.ElementsMatch(t, []string{"-as2", "+as1", "-bs1", "-bs2"}, append(told(update(t, a, snap)), told(update(t, a, snap))...))
		assert.Nil(t, snap.B)
		require.Len(t, a.Status(), 1)
		sim.After(time.Minute)
		assert.Less(t, streams.Len(), running)
	})
}

func TestG11AnAccumulatorThatIsClosedWhileQueriesWaitLeavesNothingBehind(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, _ := twoOverOne(t, s, streams)
		forbid(s, "cs")
		require.NoError(t, a.Add(t.Context(), sim.Query("C", "cs")))
		require.NoError(t, a.Replace(t.Context(), over("A", "as", "other"), sim.Query("B", "cs")))
		assert.Equal(t, 4, streams.Len())
		a.Close()
		sim.After(time.Minute)
		assert.Zero(t, streams.Len())
	})
}

func TestAnErrorOfOneQueryLeavesAllAsTheyWere(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, snap := twoOverOne(t, s, streams)
		unknown := sim.Query("B", "cs")
		unknown.Resolve = func(context.Context) (object.Resource, error) { return object.Resource{}, errors.New("no such kind") }
		assert.ErrorContains(t, a.Replace(t.Context(), over("A", "as", "other"), unknown), `query "B": no such kind`)
		assert.ErrorIs(t, a.Replace(t.Context(), over("A", "as", "other"), over("C", "cs")), query.ErrUnknownQuery)
		assert.ErrorContains(t, a.Replace(t.Context(), over("A", "as", "other"), over("A", "as")), "two of that name")
		assert.ErrorContains(t, a.Add(t.Context(), over("C", "cs"), over("C", "cs")), "already")
		named := sim.Query("A", "as")
		named.Refs = []query.Ref{}
		assert.ErrorIs(t, a.Replace(t.Context(), over("B", "bs", "other"), named), refs.ErrAtRunTime)
		sim.After(time.Minute)
		assert.False(t, update(t, a, snap).Changed)
		assert.Equal(t, 2, streams.Len())
		for _, st := range a.Status() {
			assert.False(t, st.Changing)
		}
	})
}

func TestAQueryTakesThePlaceOfTheOneThatItWasMadeOfAndOfNoOther(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, _ := twoOverOne(t, s, streams)
		made := func(after *query.Given) query.Query {
			q := over("A", "as", "other")
			q.Given, q.After = &query.Given{}, after
			return q
		}
		first := made(nil)
		require.NoError(t, a.Replace(t.Context(), first))
		second := made(first.Given)
		require.NoError(t, a.Replace(t.Context(), second), "though the first one is not shown yet")
		assert.Same(t, second.Given, a.Given("A"))
		assert.ErrorIs(t, a.Replace(t.Context(), made(first.Given), sim.Query("B", "cs")), query.ErrOvertaken)
		assert.Same(t, second.Given, a.Given("A"))
		require.NoError(t, a.Replace(t.Context(), a.collector.Queries()...), "a copy is about no other query")
		assert.Same(t, second.Given, a.Given("A"))

		hung := made(second.Given)
		hung.Resolve = func(context.Context) (object.Resource, error) {
			assert.NoError(t, a.Replace(t.Context(), over("A", "as", "third")))
			return second.Resolve(t.Context())
		}
		assert.ErrorIs(t, a.Replace(t.Context(), hung), query.ErrOvertaken, "while its kind is looked for")
		require.NoError(t, a.Remove(t.Context(), "A"))
		assert.Nil(t, a.Given("A"))
	})
}

func TestAQueryThatIsNeverCompleteIsReplacedAtOnceBeforeTheFirstSnapshot(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		s.Create("bs", sim.Thing("b"))
		forbid(s, "cs")
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "cs"))
		assert.False(t, signalled(a))
		require.NoError(t, a.Replace(t.Context(), sim.Query("B", "bs")))
		require.True(t, signalled(a))
		var snap two
		assert.Equal(t, []string{"+a", "+b"}, told(update(t, a, &snap)))
	})
}

// TestG5AQuietStreamOfASuccessorIsHelped replaces a query by one whose stream has no events of its
// own, and so does not learn of the version that was shown.
func TestG5AQuietStreamOfASuccessorIsHelped(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, snap := twoOverOne(t, s, streams)
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return second } // on its way, others write
		s.Mu.Unlock()
		require.NoError(t, a.Replace(t.Context(), over("A", "as", "other")))
		sim.After(second / 2)
		s.Touch("as", "as1", 1)
		require.True(t, signalled(a))
		update(t, a, snap)
		sim.After(20 * second)
		require.True(t, signalled(a), "it does not wait for a bookmark")
		assert.Equal(t, []string{"-as1", "+as2"}, told(update(t, a, snap)))
	})
}

// TestG5WhatWasShownIsNotTakenBackByALaterQueryOfTheName: in between it was removed, or replaced
// by another kind. The watch of the later query is late.
func TestG5WhatWasShownIsNotTakenBackByALaterQueryOfTheName(t *testing.T) {
	for _, way := range []string{"replace by other kind, read", "replace by other kind, unread", "remove add read", "remove add unread"} {
		t.Run(way, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				s.Create("as", sim.Thing("y"))
				s.Create("bs", sim.Thing("b"))
				s.DelayOf = func(w *sim.Watch) time.Duration {
					if w.Filter.Namespace == "" {
						return time.Minute
					}
					return 0
				}
				late := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(late))
				a := watching(t, streams, collect.Options{}, over("A", "as", "ns"))
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				s.Remove("as", "x")
				s.Touch("as", "y", 5)
				synctest.Wait()
				require.Equal(t, []string{"-x", "~y"}, told(update(t, a, &snap)))
				newest := snap.A[0].GetResourceVersion()
				switch way[:7] {
				case "replace":
					require.NoError(t, a.Replace(t.Context(), over("A", "bs", "ns")))
					sim.After(time.Second)
					if way == "replace by other kind, read" {
						update(t, a, &snap)
					}
					require.NoError(t, a.Replace(t.Context(), sim.Query("A", "as")))
				default:
					require.NoError(t, a.Remove(t.Context(), "A"))
					if way == "remove add read" {
						update(t, a, &snap)
					}
					require.NoError(t, a.Add(t.Context(), sim.Query("A", "as")))
				}
				for range 20 {
					sim.After(time.Second)
					update(t, a, &snap)
					for _, o := range snap.A {
						assert.NotEqual(t, "x", o.GetName())
						assert.True(t, o.GetName() == "b" || newest == o.GetResourceVersion(), "y is no older")
					}
				}
				sim.After(10 * time.Minute)
				update(t, a, &snap)
				assert.Equal(t, []string{"y"}, sim.Names(snap.A), "it is shown in the end")
			})
		})
	}
}

// TestG5AReplaceAsksTheServerForNoDeletionThatIsLongPast: the watch has shown what came after an
// own deletion whose version is not known.
func TestG5AReplaceAsksTheServerForNoDeletionThatIsLongPast(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for _, name := range []string{"x", "y", "z"} {
			s.Create("as", sim.In("ns", name))
		}
		wide := watching(t, streams, collect.Options{}, over("A", "as"))
		require.True(t, signalled(wide))
		update(t, wide, &one{})
		a := watching(t, streams, collect.Options{}, over("A", "as", "ns"))
		require.True(t, signalled(a))
		update(t, a, &one{})
		s.Late(10 * time.Second)
		sim.NewClient(s, streams).Delete("as", "y", 0, false)
		update(t, a, &one{}) // the own deletion is pending
		sim.After(time.Minute)
		s.Create("as", sim.In("ns", "later"))
		sim.After(time.Minute)
		for _, reader := range []*Accumulator{a, wide} {
			signalled(reader)
			update(t, reader, &one{})
		}
		s.Failing(func(verb, _ string) error {
			if verb == "list" {
				return errors.New("lists fail")
			}
			return nil
		})
		require.NoError(t, a.Replace(t.Context(), over("A", "as"))) // another stream has it all
		synctest.Wait()
		update(t, a, &one{})
		assert.False(t, a.Status()[0].Changing)
	})
}
