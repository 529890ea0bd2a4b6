package collect

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestG1TheStagesOfACollectorComeInTheOrderOfTheirDrawing moves from each stage to each other one.
func TestG1TheStagesOfACollectorComeInTheOrderOfTheirDrawing(t *testing.T) {
	for from := opening; from <= delivered; from++ {
		for to := opening; to <= delivered; to++ {
			c := newCourse()
			c.reach(from)
			c.reach(to)
			for s := opening; s <= delivered; s++ {
				assert.Equal(t, s <= max(from, to), c.has(s), "%d to %d: %d", from, to, s)
			}
			closed := false
			select {
			case <-c.completed:
				closed = true
			default:
			}
			assert.Equal(t, max(from, to) > opening, closed, "%d to %d", from, to)
			assert.Equal(t, closed, c.completedAt.Load() != 0)
			assert.Equal(t, closed, c.isComplete())
		}
	}
}
