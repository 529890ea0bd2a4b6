package accumulator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// halves are the shares of two replicas: by turns as the simulated server makes UIDs, so that an
// object that is made anew is often another one's.
var halves = func() (h [2]shardrange.Ranges) {
	for i := 1; i < 64; i += 2 {
		hash := shardrange.Hash(fmt.Sprint("uid-", i))
		h[0] = append(h[0], shardrange.Range{First: hash, Last: hash})
	}
	h[0] = shardrange.NewRanges(h[0]...)
	h[1] = shardrange.All().Without(h[0])
	return h
}()

// half is one of two shares of all objects, by UID.
func half(i int) shardrange.Shard {
	return shardrange.Shard{Field: shardrange.UID, Ranges: halves[i]}
}

// shardName tells the shards of this test apart.
func shardName(s shardrange.Shard) string {
	if s.Field == "" {
		return ""
	}
	return fmt.Sprint(s.Field, s.Ranges[0].First)
}

// inNamespace is the share of the objects of one namespace.
func inNamespace(name string) shardrange.Shard {
	hash := shardrange.Hash(name)
	return shardrange.Shard{Field: shardrange.Namespace, Ranges: shardrange.Ranges{{First: hash, Last: hash}}}
}

// shardedQueries are queries that bring shares: on a server that does not shard, on one that
// shards, and on one that shards and does not say so.
func shardedQueries(m *model) []query.Query {
	switch len(m.script.Steps) % 3 {
	case 1:
		m.Shards = func(asked string) string { return asked }
	case 2:
		m.Shards = func(string) string { return "" }
	}
	in := labels.SelectorFromSet(labels.Set{"in": "yes"})
	node := fields.OneTermEqualSelector("spec.node", "n1")
	all := []query.Query{
		{Shard: half(0)}, {Shard: half(1)}, {}, {Shard: half(0), Labels: in}, {Shard: half(0), Fields: node},
		{Shard: half(1)}, {Shard: half(0)}, {Shard: inNamespace("ns1")}, {Shard: inNamespace("ns2"), Fields: node},
		{Shard: half(1), AnyOf: []object.Selection{{Labels: in}, {Fields: node}}},
		{Shard: inNamespace("ns1"), Namespaces: []string{"ns1", "ns2"}},
	}
	for i := range all {
		resource := sim.Resource(modelResources[i/6%2])
		if i == 5 {
			resource.Version = "v2"
		}
		if all[i].AnyOf != nil {
			resource.Field = sim.Field
		}
		all[i].Kind = resource.Version + resource.GroupVersionResource.Resource
		all[i].Resolve = func(context.Context) (object.Resource, error) { return m.inServed(resource), nil }
	}
	return all
}

// TestModelG4G5G6G7G9SnapshotsOfShardsAreCoherentWhateverTheTiming is the model of snapshots, with
// queries that bring a share of the objects.
func TestModelG4G5G6G7G9SnapshotsOfShardsAreCoherentWhateverTheTiming(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		s := sim.DrawScript(rt)
		var err error
		synctest.Test(t, func(*testing.T) { err = runScriptOn(s, step, shardedQueries) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}
