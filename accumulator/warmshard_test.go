package accumulator

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG1G5AShareStartsWarmAndNoOtherShareHasWhatWasKept: the server may shard before the end of a
// process, after it, in both cases or never.
func TestG1G5AShareStartsWarmAndNoOtherShareHasWhatWasKept(t *testing.T) {
	ways := map[string]func(string) string{"shards": echoes, "does not shard": nil}
	for before, shardsBefore := range ways {
		for after, shardsAfter := range ways {
			t.Run("it "+before+", and then "+after, func(t *testing.T) {
				lives(t, func(p *process) { // a and c are in half(0)
					p.Shards = shardsBefore
					p.start(sharded(0))
					p.shows("a", "c")
					p.end()
					p.Shards = shardsAfter
					lists := opened(p.Server)
					p.Remove("as", "a")
					p.Touch("as", "b", 7)
					p.Create("as", sim.Thing("d"))
					p.Create("as", sim.Thing("e"))
					p.start(sharded(0))
					p.shows("c", "e")
					assert.Equal(p, "warm", p.began())
					assert.Equal(p, lists, opened(p.Server), "nothing was listed")
					p.end()
					p.start(sharded(1))
					p.shows("b", "d")
					assert.Equal(p, "list: nothing is kept of it", p.began())
				})
			})
		}
	}
}
