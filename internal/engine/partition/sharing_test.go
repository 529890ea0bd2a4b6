package partition

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func byNamespace(o object.Object) []string { return []string{o.GetNamespace()} }

// spaced is a query whose objects are divided by namespace.
func spaced(name, resource string) query.Query {
	q := sim.Query(name, resource)
	q.Key = byNamespace
	return q
}

// byNamespaces divides the queries that have keys.
func byNamespaces() *Sharing {
	return &Sharing{
		Field: func(q query.Query) shardrange.Field { return shardrange.Namespace },
		Place: func(key string) string { return key },
	}
}

// spacesOf are the ranges of some namespaces.
func spacesOf(names ...string) shardrange.Ranges {
	var all []shardrange.Range
	for _, name := range names {
		all = append(all, shardrange.Range{First: shardrange.Hash(name), Last: shardrange.Hash(name)})
	}
	return shardrange.NewRanges(all...)
}

// takeShare has the partitions bring some namespaces.
func takeShare(t *testing.T, p *Partitions, names ...string) {
	t.Helper()
	require.NoError(t, p.Share(t.Context(), spacesOf(names...)))
}

// inShares runs a test on partitions of three namespaces, whose queries bring none of them yet.
func inShares(t *testing.T, f func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions)) {
	sim.Bubble(t, stream.Config{StreamLists: true, Share: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for i := range 3 {
			s.Create("as", sim.In(fmt.Sprint("n", i), "x"))
			s.Create("bs", sim.In(fmt.Sprint("n", i), "y"))
		}
		p := partitioned(t, streams, Options{Sharing: byNamespaces()}, spaced("A", "as"), spaced("B", "bs"))
		require.Empty(t, turns(t, p))
		f(t, s, streams, p)
	})
}

// TestG1AShareHasAllObjectsOfItsKeysAndNoOthers: what a replica gains has turns with all of their
// objects, what it keeps has none, and what it loses takes no memory.
func TestG1AShareHasAllObjectsOfItsKeysAndNoOthers(t *testing.T) {
	inShares(t, func(t *testing.T, s *sim.Server, streams *streamset.Set, p *Partitions) {
		takeShare(t, p, "n0", "n1")
		assert.Equal(t, []string{"n0: x / y", "n1: x / y"}, turns(t, p))
		takeShare(t, p, "n1", "n2")
		assert.Equal(t, []string{"n0:  /  gone", "n2: x / y"}, turns(t, p), "the caller knows that it has lost n0")
		assert.Equal(t, []string{"n1", "n2"}, p.Keys())
		for _, st := range p.Status() {
			assert.Equal(t, 2, st.Objects, st.Name)
		}
		<-time.After(time.Minute)
		assert.Equal(t, 2, streams.Len(), "the former streams have ended")
		require.NoError(t, p.Share(t.Context(), shardrange.All()))
		assert.Equal(t, []string{"n0: x / y"}, turns(t, p))
		takeShare(t, p, "n2")
		assert.Equal(t, []string{"n0:  /  gone", "n1:  /  gone"}, turns(t, p))
		for _, st := range p.Status() {
			assert.Equal(t, 1, st.Objects, "%s is not a part of a wider watch", st.Name)
			assert.NotContains(t, st.Form, "wider")
		}
		s.Create("as", sim.In("n2", "z"))
		s.Create("as", sim.In("n1", "z"))
		assert.Equal(t, []string{"n2: x z / y"}, turns(t, p))
	})
}

// TestG10WhatStaysInAShareIsTheSamePointerInBothStreams, so that a change of the share takes no
// memory for it.
func TestG10WhatStaysInAShareIsTheSamePointerInBothStreams(t *testing.T) {
	inShares(t, func(t *testing.T, _ *sim.Server, _ *streamset.Set, p *Partitions) {
		takeShare(t, p, "n0", "n1")
		require.Len(t, turns(t, p), 2)
		key := object.Key{Namespace: "n1", Name: "x"}
		before := p.indexes.fields[0].Shown.objects[key].row.Source
		takeShare(t, p, "n1", "n2")
		require.Len(t, turns(t, p), 2)
		<-time.After(time.Minute)
		assert.Same(t, before, p.indexes.fields[0].Shown.objects[key].row.Source)
		assert.Same(t, before, p.indexes.fields[0].Query.Get(key), "the new stream holds the same object")
	})
}

// TestAQueryThatOthersNameStaysWhole: what is named may be in another share.
func TestAQueryThatOthersNameStaysWhole(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		naming, named := spaced("A", "as"), spaced("B", "bs")
		named.Refs = []query.Ref{{Query: "A", Names: func(o object.Object) ([]object.Key, error) {
			return []object.Key{{Namespace: "n1", Name: o.GetName()}}, nil
		}}}
		s.Create("as", sim.In("n0", "x"))
		s.Create("bs", sim.In("n1", "x"))
		p := partitioned(t, streams, Options{Sharing: byNamespaces()}, naming, named)
		takeShare(t, p, "n1")
		assert.Equal(t, []string{"n0: x / ", "n1:  / x"}, turns(t, p))
	})
}

// TestG1AQueryThatIsReplacedWhileTheShareChangesBringsTheNewShare: its kind is looked for
// meanwhile.
func TestG1AQueryThatIsReplacedWhileTheShareChangesBringsTheNewShare(t *testing.T) {
	inShares(t, func(t *testing.T, s *sim.Server, _ *streamset.Set, p *Partitions) {
		takeShare(t, p, "n0")
		require.Equal(t, []string{"n0: x / y"}, turns(t, p))
		q := spaced("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		resolve := q.Resolve
		q.Resolve = func(ctx context.Context) (object.Resource, error) {
			sim.After(time.Second)
			return resolve(ctx)
		}
		replaced := make(chan error, 1)
		go func() { replaced <- p.Replace(t.Context(), q) }()
		sim.After(time.Second / 2)
		takeShare(t, p, "n1")
		require.NoError(t, <-replaced)
		_ = turns(t, p)
		assert.Empty(t, p.unlike(wantedNow(p)))
		s.Create("as", sim.In("n1", "new", "in", "yes"))
		assert.Equal(t, []string{"n1: new / y"}, turns(t, p))
	})
}
