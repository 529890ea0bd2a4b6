package shards

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKeysThatMoveAreThoseOfWhoComesOrGoes(t *testing.T) {
	four, five := set{"a", "b", "c", "d"}, set{"a", "b", "c", "d", "e"}
	counts := map[string]int{}
	for i := range 10000 {
		key := "ns/name-" + strconv.Itoa(i)
		before, after := owner("g", key, four), owner("g", key, five)
		if after != "e" {
			assert.Equal(t, before, after)
		}
		counts[after]++
	}
	for m, n := range counts {
		assert.InDelta(t, 2000, n, 200, m)
	}
}

// TestTheHashIsWhatItWas: replicas with different versions of a program must agree.
func TestTheHashIsWhatItWas(t *testing.T) {
	assert.Equal(t, uint64(0x9b3d0c201f2b274a), weight("g", "ns/name", "0123456789"))
}
