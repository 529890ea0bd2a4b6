package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/snapshot"
)

// allocsOfOneChange returns what one Apply and Value cost in a table of n objects: with the change of one in the middle,
// and with an object more or less.
func allocsOfOneChange[S any](t *testing.T, n int, make func(name string) snapshot.Object) (replaced, insertedAndDeleted float64) {
	b := compile[S](t, "Objects")
	var all []snapshot.Change
	for i := range n {
		all = append(all, changeOf(b, 0, make(numbered(i))))
	}
	table := b.NewTable(0)
	table.Apply(all)

	middle, fresh := numbered(n/2), numbered(n/2)+"-new"
	versions := [][]snapshot.Change{
		{changeOf(b, 0, make(middle))}, {changeOf(b, 0, make(middle))},
	}
	turns := [][]snapshot.Change{
		{changeOf(b, 0, make(fresh))}, {{Key: snapshot.Key{Namespace: "ns", Name: fresh}}},
	}
	run := func(batches [][]snapshot.Change) float64 {
		return testing.AllocsPerRun(10, func() {
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
		return allocsOfOneChange[typedSnapshot](t, n, func(name string) snapshot.Object { return typed("ns", name, 80) })
	})
	check("untyped", func(n int) (float64, float64) {
		return allocsOfOneChange[untypedSnapshot](t, n, func(name string) snapshot.Object { return untyped("ns", name, 80) })
	})
}

func TestNoChangesCostNoAllocations(t *testing.T) {
	table := tableOf(compile[services](t, "Services"), 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		table.Apply(nil)
		table.Value()
	}))
}
