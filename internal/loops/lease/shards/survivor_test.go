package shards

import (
	"fmt"
	"testing"

	"github.com/kates-go/kates/internal/test/suite/rounds"
)

// TestWhoeverIsLeftHasAllKeysInTheEnd lets each replica of a group survive alone, for each size.
func TestWhoeverIsLeftHasAllKeysInTheEnd(t *testing.T) {
	for ways, name := range map[way]string{byName: "by name", byPlans: "by plans", mixed: "mixed"} {
		for _, n := range rounds.Some([]int{4, 1, 2, 3, 5, 6}) {
			for left := range n {
				t.Run(fmt.Sprintf("%s: replica %d of %d", name, left, n), func(t *testing.T) {
					w := newWorld(t, ways)
					for range n {
						w.join()
					}
					w.rest()
					w.end()
					for i, r := range w.replicas {
						r.dead = i != left
					}
					w.rest()
					w.end()
				})
			}
		}
	}
}
