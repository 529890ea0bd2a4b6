package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG6ATombstoneEndsWithTheDeletionsEvent: an own deletion hides the object until the watch has
// shown the deletion, and then nothing is held for it.
func TestG6ATombstoneEndsWithTheDeletionsEvent(t *testing.T) {
	for name, versioned := range map[string]bool{"versioned": true, "without a version": false} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				synctest.Wait()
				s.Late(time.Second)
				sim.NewClient(s, streams).Delete("as", "x", 0, versioned)
				var snap one
				update(t, a, &snap)
				assert.Empty(t, snap.A)
				assert.Equal(t, 1, a.Status()[0].Pending)
				sim.After(2 * time.Second)
				synctest.Wait()
				update(t, a, &snap)
				assert.Empty(t, snap.A)
				assert.Zero(t, a.Status()[0].Pending)
			})
		})
	}
}
