package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAStoreThatIsWrittenForLongForgetsOldVersions(t *testing.T) {
	s := New()
	var last Change
	for i := range 5 * mostKept {
		var err error
		last, err = s.Write(Key{Resource: "things", Name: "a"}, func(Object, int64) (map[string]any, bool, error) {
			return map[string]any{"i": int64(i)}, true, nil
		})
		require.NoError(t, err)
		assert.LessOrEqual(t, len(s.log), 2*mostKept)
	}
	_, _, _, err := s.Since("things", "", 1)
	assert.ErrorIs(t, err, ErrCompacted)
	_, _, err = s.List("things", "", s.Compacted()-1)
	assert.ErrorIs(t, err, ErrCompacted)

	changes, until, _, err := s.Since("things", "", s.Compacted())
	require.NoError(t, err)
	assert.Len(t, changes, int(last.RV-s.Compacted()), "nothing is missing since the oldest version")
	assert.GreaterOrEqual(t, len(changes), mostKept)
	assert.Equal(t, last.RV, until)
	old, _, err := s.List("things", "", s.Compacted())
	require.NoError(t, err)
	assert.Equal(t, changes[0].Old, old[0].New)
}
