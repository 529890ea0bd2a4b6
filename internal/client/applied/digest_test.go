package applied

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADigestTellsEverythingThatIsAppliedApart(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]any{
		{}, {"a"}, {"a", "b"}, {"ab"}, {"a\nb"}, {[]string{"a", "b"}}, {map[string]any{"a": 1}}, {map[string]any{"a": "1"}}, {nil}, {nil, nil},
	} {
		sum, err := Digest(parts...)
		require.NoError(t, err)
		assert.Len(t, sum, 22)
		assert.False(t, seen[sum], "%v", parts)
		seen[sum] = true
	}
	_, err := Digest(func() {})
	assert.Error(t, err)
}
