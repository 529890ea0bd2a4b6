package accumulator

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// inLabelOf names the objects in the label "refs": a.b.c
func inLabelOf(o object.Object) ([]object.Key, error) {
	var keys []object.Key
	for _, name := range strings.Split(o.GetLabels()["refs"], ".") {
		switch name {
		case "panic":
			panic("a bug")
		case "fail":
			return nil, errors.New("a bug")
		}
		keys = append(keys, object.Key{Name: name})
	}
	return keys, nil
}

// namingQueries returns two queries. Objects of A name those of B.
func namingQueries() []query.Query {
	b := sim.Query("B", "bs")
	b.Refs = []query.Ref{{Query: "A", Names: inLabelOf}}
	return []query.Query{b, sim.Query("A", "as")}
}

func shownIn(snap two) string {
	return strings.Join(sim.Names(snap.A), " ") + " / " + strings.Join(sim.Names(snap.B), " ")
}

// naming1 runs a test on a snapshot of x, and of a, which names x and missing. Nobody names y.
func naming1(t *testing.T, o collect.Options, f func(t *testing.T, s *sim.Server, streams *streamset.Set, a *Accumulator)) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a", "refs", "x.missing"))
		s.Create("bs", sim.Thing("x"))
		s.Create("bs", sim.Thing("y"))
		a := watching(t, streams, o, namingQueries()...)
		require.True(t, signalled(a))
		var snap two
		require.True(t, update(t, a, &snap).Complete)
		require.Equal(t, "a / x", shownIn(snap))
		f(t, s, streams, a)
	})
}

func now(t *testing.T, a *Accumulator) string {
	t.Helper()
	synctest.Wait()
	var snap two
	require.True(t, update(t, a, &snap).Complete)
	return shownIn(snap)
}

func TestOnlyWhatIsNamedIsWatchedAndOnlyWhileItIs(t *testing.T) {
	naming1(t, collect.Options{}, func(t *testing.T, s *sim.Server, streams *streamset.Set, a *Accumulator) {
		assert.Equal(t, 2, s.Opened("bs"))
		assert.Equal(t, 2, a.Status()[0].Refs)
		s.Create("bs", sim.Thing("missing"))
		assert.Equal(t, "a / missing x", now(t, a))
		s.Create("as", sim.Thing("other", "refs", "x.y"))
		assert.Equal(t, "a other / missing x y", now(t, a))
		assert.Equal(t, 3, s.Opened("bs"), "what is watched is shared")
		s.Create("as", sim.Thing("a", "refs", "y"))
		assert.Equal(t, "a other / x y", now(t, a))
		s.Remove("as", "other")
		assert.Equal(t, "a / y", now(t, a))
		s.Remove("as", "a")
		assert.Equal(t, " / ", now(t, a))
		assert.Zero(t, a.collector.Fields()[0].Query.State().Waits)
		assert.Equal(t, 1, streams.Len())
	})
}

func TestG1TheFirstSnapshotWaitsUntilWhatIsNamedIsKnown(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a", "refs", "x.missing"))
				s.Create("bs", sim.Thing("x"))
				slow := func(resource string) time.Duration {
					if resource == "bs" {
						return 20 * second
					}
					return 0
				}
				s.ListDelay, s.ListAnswer = slow, slow
				a := watching(t, streams, collect.Options{}, namingQueries()...)
				sim.After(19 * second)
				assert.False(t, signalled(a))
				assert.ErrorContains(t, a.Ready(), `query "B"`)
				sim.After(time.Minute)
				assert.True(t, signalled(a))
				assert.Equal(t, "a / x", now(t, a))
			})
		})
	}
}

func TestG1G8AnObjectIsShownWhenWhatItNamesIsKnownAndNothingElseWaits(t *testing.T) {
	naming1(t, collect.Options{Pace: collect.Pace{Interval: time.Hour}}, func(t *testing.T, s *sim.Server, _ *streamset.Set, a *Accumulator) {
		sim.After(2 * time.Hour)
		slow := func(resource string) time.Duration {
			if resource == "bs" {
				return second
			}
			return 0
		}
		s.Mu.Lock()
		s.ListDelay, s.ListAnswer, s.Delay = slow, slow, func(string) time.Duration { return 0 }
		s.Mu.Unlock()
		s.Create("as", sim.Thing("a", "refs", "y"))
		s.Create("as", sim.Thing("new", "refs", "y.none"))
		assert.Equal(t, "a / x", now(t, a), "what it was stays, with what that names")
		s.Create("as", sim.Thing("free", "refs", "x"))
		assert.Equal(t, "a free / x", now(t, a))
		sim.After(10 * second)
		assert.Equal(t, "a free new / x y", now(t, a))
	})
}

func TestTheSignalForANewObjectComesWhenWhatItNamesIsKnown(t *testing.T) {
	naming1(t, collect.Options{Pace: collect.Pace{Interval: time.Hour}}, func(t *testing.T, s *sim.Server, _ *streamset.Set, a *Accumulator) {
		sim.After(2 * time.Hour)
		s.Mu.Lock()
		s.ListDelay = func(string) time.Duration { return second }
		s.ListAnswer = s.ListDelay
		s.Mu.Unlock()
		s.Create("as", sim.Thing("new", "refs", "y"))
		assert.False(t, signalled(a), "there is nothing to be seen")
		sim.After(10 * second)
		assert.True(t, signalled(a), "at once, and not after another interval")
		assert.Equal(t, "a new / x y", now(t, a))
	})
}

func TestG8WhatMayNotBeReadOrIsNotAnsweredIsWaitedForAWhileOnly(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "bs"}, "", errors.New("no"))
	for name, test := range map[string]struct {
		err  error
		wait time.Duration
	}{
		"refused": {forbidden, 5 * second}, "failing": {apierrors.NewServiceUnavailable("down"), refs.Patience + second},
	} {
		t.Run(name, func(t *testing.T) {
			naming1(t, collect.Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, a *Accumulator) {
				s.Failing(func(_, resource string) error {
					if resource == "bs" {
						return test.err
					}
					return nil
				})
				s.Create("as", sim.Thing("new", "refs", "y"))
				assert.Equal(t, "a / x", now(t, a))
				sim.After(test.wait)
				assert.True(t, signalled(a))
				assert.Equal(t, "a new / x", now(t, a))
				assert.NotEmpty(t, a.Status()[0].Error)
				s.Failing(nil)
				sim.After(2 * time.Minute)
				assert.True(t, signalled(a))
				assert.Equal(t, "a new / x y", now(t, a))
			})
		})
	}
}

func TestARequiredQueryWaitsForTheRightToWhatIsNamedAtFirstAndAnOptionalOneDoesNot(t *testing.T) {
	for _, optional := range []bool{false, true} {
		sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Create("as", sim.Thing("a", "refs", "x"))
			s.Failing(func(_, resource string) error {
				if resource == "bs" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "bs"}, "", errors.New("no"))
				}
				return nil
			})
			queries := namingQueries()
			queries[0].Optional = optional
			a := watching(t, streams, collect.Options{}, queries...)
			sim.After(time.Minute)
			assert.Equal(t, optional, signalled(a))
			assert.Equal(t, optional, a.Ready() == nil)
		})
	}
}

func TestG8WhereTheFunctionFailsTheObjectNamesWhatItDidBefore(t *testing.T) {
	naming1(t, collect.Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, a *Accumulator) {
		for _, bug := range []string{"panic", "fail"} {
			s.Create("as", sim.Thing("a", "refs", bug))
			s.Create("as", sim.Thing(bug, "refs", bug))
			assert.Contains(t, now(t, a), "/ x")
		}
		s.Create("as", sim.Thing("a", "refs", "y"))
		assert.Equal(t, "a fail panic / y", now(t, a))
	})
}

func TestG4AnOwnWriteOfWhatIsNamedIsShownAndOneThatNamesSomethingWhenThatIsKnown(t *testing.T) {
	naming1(t, collect.Options{}, func(t *testing.T, s *sim.Server, streams *streamset.Set, a *Accumulator) {
		s.Mu.Lock()
		s.Delay = func(string) time.Duration { return time.Minute }
		s.Mu.Unlock()
		sim.NewClient(s, streams).Put("bs", sim.Thing("missing"), 0)
		var snap two
		update(t, a, &snap)
		assert.Equal(t, "a / missing x", shownIn(snap))
		sim.NewClient(s, streams).Put("as", sim.Thing("new", "refs", "y"), 0)
		sim.After(second)
		assert.Equal(t, "a new / missing x y", now(t, a))
	})
}

func TestObjectsMayNameOnesThatNameOthersButNotInACircle(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a", "refs", "b"))
		s.Create("bs", sim.Thing("b", "refs", "c"))
		s.Create("bs", sim.Thing("b2", "refs", "c2"))
		s.Create("cs", sim.Thing("c"))
		s.Create("cs", sim.Thing("c2"))
		queries := namingQueries()
		c := sim.Query("C", "cs")
		c.Refs = []query.Ref{{Query: "B", Names: inLabelOf}}
		a := watching(t, streams, collect.Options{}, append([]query.Query{c}, queries...)...)
		require.True(t, signalled(a))
		var snap three
		update(t, a, &snap)
		assert.Equal(t, []string{"c"}, sim.Names(snap.C))
		s.Create("as", sim.Thing("a", "refs", "b2"))
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"b2"}, sim.Names(snap.B))
		assert.Equal(t, []string{"c2"}, sim.Names(snap.C))

		queries[1].Refs = []query.Ref{{Query: "B", Names: inLabelOf}}
		_, err := New(t.Context(), streams, queries, collect.Options{})
		assert.ErrorContains(t, err, "in a circle")
		_, err = New(t.Context(), streams, queries[:1], collect.Options{})
		assert.ErrorIs(t, err, query.ErrUnknownQuery)
		queries[0].Namespace = "ns"
		_, err = New(t.Context(), streams, queries, collect.Options{})
		assert.ErrorContains(t, err, "its Refs say which objects are watched")
		assert.ErrorIs(t, a.Remove(t.Context(), "A"), refs.ErrAtRunTime)
		assert.ErrorIs(t, a.Replace(t.Context(), queries[0]), refs.ErrAtRunTime)
	})
}

func TestG11ReferencesEndWithTheirWatch(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for i := range 50 {
			s.Create("as", sim.Thing("a"+string(rune('A'+i%26)), "refs", "x"+string(rune('A'+i%26))))
			a := watching(t, streams, collect.Options{}, namingQueries()...)
			if i%2 == 0 {
				synctest.Wait()
			}
			a.Close()
		}
		synctest.Wait()
		assert.Zero(t, streams.Len())
	})
}
