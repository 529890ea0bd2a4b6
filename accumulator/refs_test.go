package accumulator

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator/stream"
)

// inLabelOf names the objects in the label "refs": a.b.c
func inLabelOf(o Object) ([]Key, error) {
	var keys []Key
	for _, name := range strings.Split(o.GetLabels()["refs"], ".") {
		switch name {
		case "panic":
			panic("a bug")
		case "fail":
			return nil, errors.New("a bug")
		}
		keys = append(keys, Key{Name: name})
	}
	return keys, nil
}

// namingQueries returns two queries. Objects of A name those of B.
func namingQueries() []Query {
	b := simQuery("B", "bs")
	b.Refs = []Ref{{Query: "A", Names: inLabelOf}}
	return []Query{b, simQuery("A", "as")}
}

func shownIn(snap two) string {
	return strings.Join(names(snap.A), " ") + " / " + strings.Join(names(snap.B), " ")
}

// naming1 runs a test on a snapshot of x, and of a, which names x and missing. Nobody names y.
func naming1(t *testing.T, o Options, f func(t *testing.T, s *sim, streams *stream.Set, a *Accumulator)) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("a", "refs", "x.missing"))
		s.create("bs", thing("x"))
		s.create("bs", thing("y"))
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
	naming1(t, Options{}, func(t *testing.T, s *sim, streams *stream.Set, a *Accumulator) {
		assert.Equal(t, 2, s.opened("bs"))
		assert.Equal(t, 2, a.Status()[0].Refs)
		s.create("bs", thing("missing"))
		assert.Equal(t, "a / missing x", now(t, a))
		s.create("as", thing("other", "refs", "x.y"))
		assert.Equal(t, "a other / missing x y", now(t, a))
		assert.Equal(t, 3, s.opened("bs"), "what is watched is shared")
		s.create("as", thing("a", "refs", "y"))
		assert.Equal(t, "a other / x y", now(t, a))
		s.remove("as", "other")
		assert.Equal(t, "a / y", now(t, a))
		s.remove("as", "a")
		assert.Equal(t, " / ", now(t, a))
		assert.Empty(t, a.fieldsNow()[0].refs.named)
		assert.Equal(t, 1, streams.Len())
	})
}

func TestG1TheFirstSnapshotWaitsUntilWhatIsNamedIsKnown(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("a", "refs", "x.missing"))
				s.create("bs", thing("x"))
				slow := func(resource string) time.Duration {
					if resource == "bs" {
						return 20 * second
					}
					return 0
				}
				s.listDelay, s.listAnswer = slow, slow
				a := watching(t, streams, Options{}, namingQueries()...)
				after(19 * second)
				assert.False(t, signalled(a))
				assert.ErrorContains(t, a.Ready(), `query "B"`)
				after(time.Minute)
				assert.True(t, signalled(a))
				assert.Equal(t, "a / x", now(t, a))
			})
		})
	}
}

func TestG1G8AnObjectIsShownWhenWhatItNamesIsKnownAndNothingElseWaits(t *testing.T) {
	naming1(t, Options{Pace: Pace{Interval: time.Hour}}, func(t *testing.T, s *sim, _ *stream.Set, a *Accumulator) {
		after(2 * time.Hour)
		slow := func(resource string) time.Duration {
			if resource == "bs" {
				return second
			}
			return 0
		}
		s.mu.Lock()
		s.listDelay, s.listAnswer, s.delay = slow, slow, func(string) time.Duration { return 0 }
		s.mu.Unlock()
		s.create("as", thing("a", "refs", "y"))
		s.create("as", thing("new", "refs", "y.none"))
		assert.Equal(t, "a / x", now(t, a), "what it was stays, with what that names")
		s.create("as", thing("free", "refs", "x"))
		assert.Equal(t, "a free / x", now(t, a))
		after(10 * second)
		assert.Equal(t, "a free new / x y", now(t, a))
	})
}

func TestTheSignalForANewObjectComesWhenWhatItNamesIsKnown(t *testing.T) {
	naming1(t, Options{Pace: Pace{Interval: time.Hour}}, func(t *testing.T, s *sim, _ *stream.Set, a *Accumulator) {
		after(2 * time.Hour)
		s.mu.Lock()
		s.listDelay = func(string) time.Duration { return second }
		s.listAnswer = s.listDelay
		s.mu.Unlock()
		s.create("as", thing("new", "refs", "y"))
		assert.False(t, signalled(a), "there is nothing to be seen")
		after(10 * second)
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
		"refused": {forbidden, 5 * second}, "failing": {apierrors.NewServiceUnavailable("down"), refPatience + second},
	} {
		t.Run(name, func(t *testing.T) {
			naming1(t, Options{}, func(t *testing.T, s *sim, _ *stream.Set, a *Accumulator) {
				s.failing(func(_, resource string) error {
					if resource == "bs" {
						return test.err
					}
					return nil
				})
				s.create("as", thing("new", "refs", "y"))
				assert.Equal(t, "a / x", now(t, a))
				after(test.wait)
				assert.True(t, signalled(a))
				assert.Equal(t, "a new / x", now(t, a))
				assert.NotEmpty(t, a.Status()[0].Error)
				s.failing(nil)
				after(2 * time.Minute)
				assert.True(t, signalled(a))
				assert.Equal(t, "a new / x y", now(t, a))
			})
		})
	}
}

func TestARequiredQueryWaitsForTheRightToWhatIsNamedAtFirstAndAnOptionalOneDoesNot(t *testing.T) {
	for _, optional := range []bool{false, true} {
		bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
			s.create("as", thing("a", "refs", "x"))
			s.failing(func(_, resource string) error {
				if resource == "bs" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "bs"}, "", errors.New("no"))
				}
				return nil
			})
			queries := namingQueries()
			queries[0].Optional = optional
			a := watching(t, streams, Options{}, queries...)
			after(time.Minute)
			assert.Equal(t, optional, signalled(a))
			assert.Equal(t, optional, a.Ready() == nil)
		})
	}
}

func TestG8WhereTheFunctionFailsTheObjectNamesWhatItDidBefore(t *testing.T) {
	naming1(t, Options{}, func(t *testing.T, s *sim, _ *stream.Set, a *Accumulator) {
		for _, bug := range []string{"panic", "fail"} {
			s.create("as", thing("a", "refs", bug))
			s.create("as", thing(bug, "refs", bug))
			assert.Contains(t, now(t, a), "/ x")
		}
		s.create("as", thing("a", "refs", "y"))
		assert.Equal(t, "a fail panic / y", now(t, a))
	})
}

func TestG4AnOwnWriteOfWhatIsNamedIsShownAndOneThatNamesSomethingWhenThatIsKnown(t *testing.T) {
	naming1(t, Options{}, func(t *testing.T, s *sim, streams *stream.Set, a *Accumulator) {
		s.mu.Lock()
		s.delay = func(string) time.Duration { return time.Minute }
		s.mu.Unlock()
		own{s, streams}.put("bs", thing("missing"), 0)
		var snap two
		update(t, a, &snap)
		assert.Equal(t, "a / missing x", shownIn(snap))
		own{s, streams}.put("as", thing("new", "refs", "y"), 0)
		after(second)
		assert.Equal(t, "a new / missing x y", now(t, a))
	})
}

func TestObjectsMayNameOnesThatNameOthersButNotInACircle(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("a", "refs", "b"))
		s.create("bs", thing("b", "refs", "c"))
		s.create("bs", thing("b2", "refs", "c2"))
		s.create("cs", thing("c"))
		s.create("cs", thing("c2"))
		queries := namingQueries()
		c := simQuery("C", "cs")
		c.Refs = []Ref{{Query: "B", Names: inLabelOf}}
		a := watching(t, streams, Options{}, append([]Query{c}, queries...)...)
		require.True(t, signalled(a))
		var snap three
		update(t, a, &snap)
		assert.Equal(t, []string{"c"}, names(snap.C))
		s.create("as", thing("a", "refs", "b2"))
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"b2"}, names(snap.B))
		assert.Equal(t, []string{"c2"}, names(snap.C))

		queries[1].Refs = []Ref{{Query: "B", Names: inLabelOf}}
		_, err := New(t.Context(), streams, queries, Options{})
		assert.ErrorContains(t, err, "in a circle")
		_, err = New(t.Context(), streams, queries[:1], Options{})
		assert.ErrorIs(t, err, ErrUnknownQuery)
		queries[0].Namespace = "ns"
		_, err = New(t.Context(), streams, queries, Options{})
		assert.ErrorContains(t, err, "its Refs say which objects are watched")
		assert.ErrorIs(t, a.Remove(t.Context(), "A"), errRefsAtRunTime)
		assert.ErrorIs(t, a.Replace(t.Context(), queries[0]), errRefsAtRunTime)
	})
}

func TestInPartitionsWhatIsNamedIsWatchedAndWhatIsReadOfItActivates(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "k", "a", "refs", "one"))
		s.create("as", thing("y", "k", "b", "refs", "two"))
		s.create("ls", thing("one"))
		queries := referringQueries()
		queries[1].Refs = []Ref{{Query: "A", Names: inLabelOf}}
		p, err := Partition(t.Context(), streams, reflect.TypeFor[referring](), queries, PartitionOptions{})
		require.NoError(t, err)
		defer p.Close()
		found := map[string]bool{}
		read := func(t *Turn) {
			name := t.Snapshot.(*referring).A[0].GetLabels()["refs"]
			get, _ := lookupOf(t)
			found[name] = get(name)
		}
		assert.Equal(t, []string{"a", "b"}, keysOfTurns(t, p, read))
		assert.Equal(t, map[string]bool{"one": true, "two": false}, found)
		s.create("ls", thing("two"))
		s.create("ls", thing("three"))
		assert.Equal(t, []string{"b"}, keysOfTurns(t, p, read))
		s.relabel("x", "k", "a", "refs", "three")
		assert.Equal(t, []string{"a"}, keysOfTurns(t, p, read))
		assert.Equal(t, map[string]bool{"one": true, "two": true, "three": true}, found)
		s.remove("ls", "three")
		assert.Equal(t, []string{"a"}, keysOfTurns(t, p, read))
		s.touch("ls", "one", 1)
		assert.Empty(t, keysOfTurns(t, p, read))
	})
}

func TestG11ReferencesEndWithTheirWatch(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		for i := range 50 {
			s.create("as", thing("a"+string(rune('A'+i%26)), "refs", "x"+string(rune('A'+i%26))))
			a := watching(t, streams, Options{}, namingQueries()...)
			if i%2 == 0 {
				synctest.Wait()
			}
			a.Close()
		}
		synctest.Wait()
		assert.Zero(t, streams.Len())
	})
}

func TestANameIsInTheNamespaceOfTheObjectUnlessItSaysOneOrItsKindHasNone(t *testing.T) {
	var n naming
	assert.Equal(t, Key{Namespace: "ns", Name: "x"}, n.complete(Key{Name: "x"}, thing("a")))
	assert.Equal(t, Key{Namespace: "other", Name: "x"}, n.complete(Key{Namespace: "other", Name: "x"}, thing("a")))
	n.wide = true
	assert.Equal(t, types.NamespacedName{Name: "x"}, n.complete(Key{Namespace: "other", Name: "x"}, thing("a")))
}
