package partition

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestG7ObjectsOfAQueryThatIsReplacedHaveTheKeysOfTheNewFunction(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, _ *sim.Server, _ *streamset.Set, p *Partitions) {
		q := keyed("A", "as")
		q.Key = func(o object.Object) []string {
			switch o.GetName() {
			case "x":
				return []string{"b"}
			case "none":
				return []string{query.EveryPartition}
			}
			return byLabel(o)
		}
		require.NoError(t, p.Replace(t.Context(), q))
		assert.Equal(t, []string{"a: none y / c", "b: none x y / c"}, turns(t, p))
		require.NoError(t, p.Replace(t.Context(), q))
		assert.Empty(t, turns(t, p), "nothing differs")
		q.Key = func(object.Object) []string { return []string{"b"} }
		require.NoError(t, p.Replace(t.Context(), q))
		assert.Equal(t, []string{"a:  /  gone"}, turns(t, p), "b has what it had, and as many objects of its own")
	})
}

func TestG7WhatARemovedQueryHadLeavesWithItsDeletions(t *testing.T) {
	abc(t, Options{}, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		require.NoError(t, p.Remove(t.Context(), "B"))
		next := turn(t, p)
		assert.Equal(t, "a", next.Key)
		assert.Nil(t, next.Snapshot.(*two).B)
		require.Len(t, next.Differences, 1)
		assert.Equal(t, "c", next.Differences[0].Old.GetName())
		next.Done(nil)
		assert.Equal(t, []string{"b: y / "}, turns(t, p))
		s.Create("bs", sim.Thing("d"))
		assert.Empty(t, turns(t, p))
		require.NoError(t, p.Add(t.Context(), keyed("B", "bs")))
		assert.Equal(t, []string{"a: x y / ", "b: y / "}, turns(t, p), "the field is there again, and its objects have no key now")
		assert.ErrorContains(t, p.Remove(t.Context(), "A", "B"), "no query has a key function")
		assert.ErrorContains(t, p.Add(t.Context(), sim.Query("C", "cs")), "C")
	})
}

func TestTheKeysOfAMapAreSpelledAsTheNewQuerySpansNamespaces(t *testing.T) {
	type spelled struct {
		A map[string]*unstructured.Unstructured
	}
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "k", "a"))
		q := keyed("A", "as")
		q.Namespace = "ns"
		p, err := Start(t.Context(), streams, reflect.TypeFor[spelled](), []query.Query{q}, Options{})
		require.NoError(t, err)
		first := turn(t, p)
		assert.Contains(t, first.Snapshot.(*spelled).A, "x")
		first.Done(nil)
		q.Namespace = ""
		require.NoError(t, p.Replace(t.Context(), q))
		next := turn(t, p)
		require.NotNil(t, next)
		assert.Contains(t, next.Snapshot.(*spelled).A, "ns/x")
		assert.Len(t, next.Snapshot.(*spelled).A, 1)
		next.Done(nil)
	})
}
