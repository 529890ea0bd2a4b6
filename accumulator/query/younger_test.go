package query

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/coherence"
)

// TestG5AStateThatIsNoNewerThanWhatWasShownIsNoneOfADepartureAtASwitch: the reader may have seen
// the object go since.
func TestG5AStateThatIsNoNewerThanWhatWasShownIsNoneOfADepartureAtASwitch(t *testing.T) {
	at := func(rv string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetResourceVersion(rv)
		return u
	}
	for rv, counts := range map[string]bool{"9": false, "10": false, "11": true} {
		d := coherence.Departure{LeftRV: "12", Last: at(rv), Wrote: at("8"), WroteRV: "8"}
		m := merging{noOlderRV: "10"}
		got := m.younger(d)
		assert.Equal(t, counts, got.Last != nil, rv)
		assert.Equal(t, d.Wrote, got.Wrote, "own writes count (G4)")
		assert.Equal(t, "12", got.LeftRV)
		m.noOlderRV = ""
		assert.NotNil(t, m.younger(d).Last, "versions do not compare")
	}
}
