package kates

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/test/suite/rounds"
)

// differing returns n updates.
func differing(n int) []tables.Difference {
	diffs := make([]tables.Difference, n)
	for i := range diffs {
		u := NewUnstructured("Deployment", "apps/v1")
		u.SetNamespace("ns")
		u.SetName(fmt.Sprint("d-", i))
		u.SetResourceVersion(fmt.Sprint(i))
		diffs[i] = tables.Difference{Query: "Deployments", Old: u, New: u}
	}
	return diffs
}

func BenchmarkDeltas(b *testing.B) {
	for _, n := range []int{0, 1, 100, 50_000} {
		diffs := differing(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				deltasOf(diffs)
			}
		})
	}
}

func TestG3DeltasAllocateForWhatChangedAlone(t *testing.T) {
	for n, most := range map[int]float64{0: 0, 1: 2, 160: 11} {
		diffs := differing(n)
		assert.LessOrEqual(t, rounds.Allocs(10, func() { deltasOf(diffs) }), most, n)
	}
	deltas := deltasOf(differing(40))
	assert.Len(t, deltas, 40)
	for i, d := range deltas {
		assert.Equal(t, fmt.Sprint("d-", i), d.Name)
		assert.Equal(t, TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, d.TypeMeta)
	}
}
