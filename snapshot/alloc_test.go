package snapshot_test

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/words"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/test/suite/rounds"
)

// allocsOfOneChange returns what one Apply and Value cost in a table of n objects: when one in
// the middle changes, and when one object is added or removed.
func allocsOfOneChange[S any](t *testing.T, n int, make func(name string) tables.Object) (replaced, insertedAndDeleted float64) {
	b := compile[S](t, "Objects")
	var all []tables.Change
	for i := range n {
		all = append(all, changeOf(b, 0, make(numbered(i))))
	}
	table := b.NewTable(0)
	table.Apply(all)

	middle, fresh := numbered(n/2), numbered(n/2)+"-new"
	versions := [][]tables.Change{
		{changeOf(b, 0, make(middle))}, {changeOf(b, 0, make(middle))},
	}
	turns := [][]tables.Change{
		{changeOf(b, 0, make(fresh))}, {{Key: tables.Key{Namespace: "ns", Name: fresh}}},
	}
	run := func(batches [][]tables.Change) float64 {
		return rounds.Allocs(10, func() {
			for _, changes := range batches {
				if diffs, _ := table.Apply(changes); len(diffs) != 1 {
					t.Fatalf("%d diffs", len(diffs))
				}
				table.Value()
			}
		})
	}
	return run(versions), run(turns)
}

func TestTheAllocationsOfOneChangeDoNotGrowWithTheNumberOfObjects(t *testing.T) {
	type typedSnapshot struct{ Objects []*corev1.Service }
	type untypedSnapshot struct{ Objects []*unstructured.Unstructured }
	check := func(name string, allocs func(n int) (float64, float64)) {
		t.Run(name, func(t *testing.T) {
			replacedFew, turnedFew := allocs(1000)
			replacedMany, turnedMany := allocs(50_000)
			require.LessOrEqual(t, replacedMany, replacedFew)
			require.LessOrEqual(t, turnedMany, turnedFew)
			require.Less(t, replacedMany, 20.0)
			require.Less(t, turnedMany, 40.0)
		})
	}
	check("typed", func(n int) (float64, float64) {
		return allocsOfOneChange[typedSnapshot](t, n, func(name string) tables.Object { return typed("ns", name, 80) })
	})
	check("untyped", func(n int) (float64, float64) {
		return allocsOfOneChange[untypedSnapshot](t, n, func(name string) tables.Object { return untyped("ns", name, 80) })
	})
}

func TestNoChangesCostNoAllocations(t *testing.T) {
	table := tableOf(compile[services](t, "Services"), 100)
	require.Zero(t, rounds.Allocs(100, func() {
		table.Apply(nil)
		table.Value()
	}))
}

// This is the promise of Ahead: the work that remains does not grow with the number of objects,
// neither in allocations nor in bytes.
func TestG10WhatIsCopiedAheadIsDeliveredOnceAndCostsNothingThen(t *testing.T) {
	type byName struct {
		Objects map[types.NamespacedName]*corev1.Service
	}
	t.Run("slice", func(t *testing.T) { costsAfterAhead[services](t, "Services", true) })
	t.Run("map", func(t *testing.T) { costsAfterAhead[byName](t, "Objects", false) })
}

// costsAfterAhead measures each kind of change five times, of which the least counts: the runtime
// allocates, too. It inserts only where that cannot make the list of objects grow.
func costsAfterAhead[S any](t *testing.T, field string, inserts bool) {
	const n = 20_000
	b := compile[S](t, field)
	table := tableOf(b, n)
	if !words.OK {
		table.Value()
		require.Nil(t, table.Ahead(), "only words are copied ahead")
		return
	}
	least := slices.Repeat([]uint64{math.MaxUint64}, 4)
	for i := range 20 {
		before := table.Value()
		held := freeze(before)
		ahead := table.Ahead()
		require.NotNil(t, ahead)
		require.Nil(t, table.Ahead(), "once is enough")
		ahead()
		changes := []tables.Change{changeOf(b, 0, typed("ns", numbered(i*7), 81))}
		switch i % 4 {
		case 1:
			if !inserts {
				break
			}
			changes[0] = changeOf(b, 0, typed("ns", numbered(i)+"-new", 81))
		case 2:
			changes[0].Row = nil
		}
		least[i%4] = min(least[i%4], allocated(func() {
			table.Apply(changes)
			table.Value()
		}))
		require.NotEqual(t, before.UnsafePointer(), table.Value().UnsafePointer())
		require.Equal(t, held.Interface(), before.Interface(), "what was delivered stays")
	}
	for kind, spent := range least {
		require.Less(t, spent, uint64(4096), "bytes of a change of kind %d, of %d objects", kind, n)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestACopyAheadOfAMapThatIsMadeAnewIsForgotten(t *testing.T) {
	type byName struct {
		Objects map[types.NamespacedName]*corev1.Service
	}
	b := compile[byName](t, "Objects")
	table := tableOf(b, 10)
	table.Value()
	table.Ahead()
	want := spread(b, 10, 10, numbered)
	table.Apply(want)
	table.Value()
	table.Apply(spread(b, 10, 1, numbered))
	got := table.Value().Interface().(map[types.NamespacedName]*corev1.Service)
	for _, c := range want[1:] {
		require.Same(t, c.Row.Source, got[c.Key])
	}
}
