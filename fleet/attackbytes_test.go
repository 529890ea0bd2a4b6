package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTwoClustersWithOneUIDAreShownAsThat(t *testing.T) {
	s := Status{Clusters: []ClusterStatus{
		{Name: "a", UID: "one"}, {Name: "b", UID: "one"}, {Name: "c", UID: "other"}, {Name: "d"}, {Name: "e"}, {Name: "f", UID: "one"},
	}}
	assert.Equal(t, map[string]string{"a": "b, f", "b": "a, f", "f": "a, b"}, s.alike(), "unknown UIDs are not alike")
	assert.Contains(t, s.String(), "one (as a, f)")
	assert.NotContains(t, s.String(), "other (as")
}
