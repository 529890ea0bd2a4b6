package accumulator

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/accumulator/stream"
)

// nosy looks around while it decodes.
type nosy struct{}

var whileDecoding func()

func (n *nosy) UnmarshalJSON([]byte) error {
	whileDecoding()
	return nil
}

func TestG11NoLockIsHeldWhileAnObjectIsConverted(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		other := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		st := a.fields[0].parts[0].sub.Stage()
		decoded := 0
		whileDecoding = func() {
			decoded++
			_ = st.Event(benchObject(decoded, 1000+decoded), false)
			update(t, other, &one{})
			assert.False(t, streams.Shares(thing("y")))
			assert.NoError(t, a.Ready())
			assert.Len(t, a.Status(), 1)
			assert.NotNil(t, streams.Newest(simResource("as"), Key{Namespace: "ns", Name: "x"}, Whole))
		}
		var snap struct{ A []*nosy }
		update(t, a, &snap)
		assert.Len(t, snap.A, 1)
		update(t, a, &snap)
		assert.Equal(t, 2, decoded, "the event that came meanwhile")
		assert.Len(t, snap.A, 2)
	})
}
