package accumulator

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// nosy looks around while it decodes.
type nosy struct{}

var whileDecoding func()

func (n *nosy) UnmarshalJSON([]byte) error {
	whileDecoding()
	return nil
}

func TestG11NoLockIsHeldWhileAnObjectIsConverted(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		other := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		st := listener(a, 0).Stage()
		decoded := 0
		whileDecoding = func() {
			decoded++
			_ = st.Event(benchObject(decoded, 1000+decoded), false)
			update(t, other, &one{})
			assert.False(t, streams.Shares(sim.Thing("y")))
			assert.NoError(t, a.Ready())
			assert.Len(t, a.Status(), 1)
			assert.NotNil(t, streams.Newest(sim.Resource("as"), object.Key{Namespace: "ns", Name: "x"}, object.IsWhole))
		}
		var snap struct{ A []*nosy }
		update(t, a, &snap)
		assert.Len(t, snap.A, 1)
		update(t, a, &snap)
		assert.Equal(t, 2, decoded, "the event that came meanwhile")
		assert.Len(t, snap.A, 2)
	})
}
