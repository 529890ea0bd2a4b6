package partition

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// inSpaces narrows a query to the namespaces of a team.
func inSpaces(t *testing.T, q query.Query) query.Query {
	selector, err := labels.Parse("team=a")
	require.NoError(t, err)
	q.Spaces = &query.Spaces{Labels: selector, Resolve: func(context.Context) (object.Resource, error) {
		r := sim.Resource("namespaces")
		r.Namespaced = false
		return r, nil
	}}
	return q
}

func TestG7WhatLeftAndIsBackUnseenIsNoTurn(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		team := func(namespace, team string) { s.Create("namespaces", sim.In("", namespace, "team", team)) }
		team("n1", "a")
		team("n2", "b")
		s.Create("as", sim.In("n1", "x", "k", "a"))
		s.Create("as", sim.In("n2", "y", "k", "a.b"))
		p := partitioned(t, streams, Options{}, inSpaces(t, keyed("A", "as")), sim.Query("B", "bs"))
		assert.Equal(t, []string{"a: x / "}, turns(t, p))
		team("n2", "a")
		assert.Equal(t, []string{"a: x y / ", "b: y / "}, turns(t, p))
		p.Trigger("b")
		held := turn(t, p)
		team("n2", "b")
		assert.Equal(t, []string{"a: x / "}, turns(t, p))
		team("n2", "a")
		assert.Equal(t, []string{"a: x y / "}, turns(t, p))
		held.Done(nil)
		assert.Empty(t, turns(t, p), "b had it, and has it")
		s.Create("as", sim.In("n1", "z", "k", "b"))
		next := turn(t, p)
		assert.Equal(t, "b: z y / ", text(next))
		assert.Len(t, next.Differences, 1)
		assert.True(t, streams.Shares(next.Snapshot.(*two).A[1]))
		next.Done(nil)
		s.Put("namespaces", object.Key{Name: "n2"}, nil)
		assert.Equal(t, []string{"a: x / ", "b: z / "}, turns(t, p), "a namespace goes")
	})
}

func TestG6WhatMovesBackAndForthWhileATurnIsUnderWayIsTheDifferenceOfTheNext(t *testing.T) {
	abc(t, Options{Backoff: partBackoff}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		s.Touch("as", "x", 1)
		held := turn(t, p)
		require.Equal(t, "a", held.Key)
		s.Relabel("x", "k", "b")
		s.Relabel("y", "k", "b")
		assert.Equal(t, []string{"b: x y / c"}, turns(t, p))
		s.Relabel("x", "k", "a")
		assert.Equal(t, []string{"b: y / c"}, turns(t, p))
		s.Relabel("x", "k", "b")
		assert.Equal(t, []string{"b: x y / c"}, turns(t, p))
		held.Done(nil)
		gone := turn(t, p)
		require.Equal(t, "a:  /  gone", text(gone))
		assert.Len(t, gone.Differences, 3)
		s.Relabel("x", "k", "a")
		assert.Equal(t, []string{"b: y / c"}, turns(t, p))
		s.Relabel("x", "k", "b")
		assert.Equal(t, []string{"b: x y / c"}, turns(t, p))
		gone.Done(nil)
		assert.Empty(t, turns(t, p), "it has been told that it is gone")
		assert.Equal(t, []string{"b"}, p.Keys())

		s.Relabel("x", "k", "a")
		assert.Equal(t, []string{"a: x / c", "b: y / c"}, turns(t, p))
		s.Relabel("x", "k", "b")
		gone = turn(t, p)
		require.Equal(t, "a:  /  gone", text(gone))
		s.Relabel("x", "k", "a")
		turns(t, p)
		gone.Done(errors.New("it comes back, and is not gone any more"))
		sim.After(second)
		again := turn(t, p)
		assert.Equal(t, "a: x / c", text(again))
		assert.Equal(t, 2, again.Attempt)
		assert.Len(t, again.Differences, 2)
		p.Close()
		again.Done(errors.New("too late"))
		p.TriggerAll()
	})
}

// appearing is a kind, with a bubble of its own, that is not served at first.
type appearing struct {
	s                  *sim.Server
	resource           string
	served, namespaced atomic.Bool
}

func appears(t *testing.T, resource string, f func(t *testing.T, s *sim.Server, streams *streamset.Set, kind *appearing)) {
	kind := &appearing{resource: resource}
	kind.namespaced.Store(true)
	config := stream.Config{StreamLists: true, KindPoll: time.Minute, Gone: func(context.Context, object.Resource, string, error) bool { return !kind.served.Load() }}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		kind.s = s
		kind.serve(false)
		f(t, s, streams, kind)
	})
}

func (k *appearing) query(q query.Query) query.Query {
	q.Optional = true
	return sim.Scoped(q, &k.served, &k.namespaced)
}

func (k *appearing) serve(yes bool) {
	k.served.Store(yes)
	k.s.Failing(func(_, resource string) error {
		if resource == k.resource && !yes {
			return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "")
		}
		return nil
	})
	if !yes {
		k.s.Cut()
	}
	sim.After(10 * time.Minute)
}

func TestG7G8AnOptionalKindThatAppearsAndGoesActivatesAllAndEmptiesWhatHasNothingElse(t *testing.T) {
	appears(t, "bs", func(t *testing.T, s *sim.Server, streams *streamset.Set, kind *appearing) {
		s.Create("as", sim.Thing("x", "k", "a"))
		p := partitioned(t, streams, Options{Backoff: partBackoff}, keyed("A", "as"), kind.query(keyed("B", "bs")))
		held := turn(t, p)
		assert.Nil(t, held.Snapshot.(*two).B)
		kind.serve(true)
		assert.Nil(t, turn(t, p))
		held.Done(nil)
		next := turn(t, p)
		require.NotNil(t, next, "absent is nil, empty is not")
		assert.NotNil(t, next.Snapshot.(*two).B)
		assert.Empty(t, next.Differences)
		next.Done(nil)
		s.Create("bs", sim.Thing("y", "k", "a.b"))
		assert.Equal(t, []string{"a: x / y", "b:  / y"}, turns(t, p))
		p.Trigger("b")
		held = turn(t, p)
		kind.serve(false)
		next = turn(t, p)
		assert.Equal(t, "a: x / ", text(next))
		assert.Nil(t, next.Snapshot.(*two).B)
		assert.Len(t, next.Differences, 1)
		next.Done(nil)
		assert.Nil(t, turn(t, p))
		held.Done(errors.New("oops"))
		sim.After(second)
		next = turn(t, p)
		assert.Equal(t, "b:  /  gone", text(next))
		assert.Nil(t, next.Snapshot.(*two).B)
		assert.Len(t, next.Differences, 1)
		next.Done(nil)
		assert.Equal(t, []string{"a"}, p.Keys())
		kind.serve(true)
		assert.Equal(t, []string{"a: x / y", "b:  / y"}, turns(t, p))
	})
}

func TestG8ALookupOfAnOptionalKindTellsAllThatItAppearsOrGoes(t *testing.T) {
	appears(t, "ls", func(t *testing.T, s *sim.Server, streams *streamset.Set, kind *appearing) {
		s.Create("as", sim.Thing("x", "k", "a"))
		s.Create("as", sim.Thing("y", "k", "b"))
		s.Create("ls", sim.Thing("there"))
		p, err := Start(t.Context(), streams, reflect.TypeFor[referring](), []query.Query{keyed("A", "as"), kind.query(sim.Query("L", "ls"))}, Options{})
		require.NoError(t, err)
		read := reading("a", "there")
		assert.Equal(t, []string{"a", "b"}, keysOfTurns(t, p, read))
		kind.serve(true)
		assert.Equal(t, []string{"a", "b"}, keysOfTurns(t, p, read))
		s.Touch("ls", "there", 1)
		assert.Equal(t, []string{"a"}, keysOfTurns(t, p, read))
		p.Trigger("a")
		held := turn(t, p)
		get, _ := lookupOf(held)
		assert.True(t, get("there"))
		kind.serve(false)
		assert.Equal(t, []string{"b"}, keysOfTurns(t, p, nil))
		held.Done(nil)
		next := turn(t, p)
		require.NotNil(t, next)
		assert.False(t, next.Snapshot.(*referring).L.Available())
		assert.Len(t, next.Differences, 1)
		next.Done(nil)
		assert.Empty(t, keysOfTurns(t, p, nil))
	})
}

// TestATurnMayEndAfterALookupWasAdded: the turn has nothing to look up in it.
func TestATurnMayEndAfterALookupWasAdded(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "k", "a"))
		s.Create("as", sim.Thing("y", "k", "b"))
		s.Create("ls", sim.Thing("there"))
		p, err := Start(t.Context(), streams, reflect.TypeFor[referring](), []query.Query{keyed("A", "as")}, Options{})
		require.NoError(t, err)
		synctest.Wait()
		held, other := turn(t, p), turn(t, p)
		require.NotNil(t, other)
		require.NoError(t, p.Add(t.Context(), sim.Query("L", "ls")))
		sim.After(time.Second)
		other.Done(nil)
		_ = keysOfTurns(t, p, nil)
		held.Done(nil)
		assert.Contains(t, keysOfTurns(t, p, reading("a", "there")), held.Key)
	})
}

// TestG2WhatAQueryOfNothingNamesIsGoneInTheSameTurn: the query takes the place of one whose objects
// name others.
func TestG2WhatAQueryOfNothingNamesIsGoneInTheSameTurn(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		naming, named := sim.Query("A", "as"), spaced("B", "bs")
		named.Refs = []query.Ref{{Query: "A", Names: func(o object.Object) ([]object.Key, error) {
			return []object.Key{{Namespace: "n1", Name: o.GetName()}}, nil
		}}}
		s.Create("as", sim.In("n0", "x"))
		s.Create("bs", sim.In("n1", "x"))
		p := partitioned(t, streams, Options{}, naming, named)
		require.Equal(t, []string{"n1: x / x"}, turns(t, p))
		none := naming
		none.Optional = true
		none.Resolve = func(context.Context) (object.Resource, error) {
			return object.Resource{}, fmt.Errorf("%w: cs", query.ErrNotServed)
		}
		require.NoError(t, p.Replace(t.Context(), none))
		assert.Equal(t, []string{"n1:  /  gone"}, turns(t, p))
	})
}
