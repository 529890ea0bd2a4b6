package firstbuild

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFirstBuildCompilesAllThatAProgramNeeds(t *testing.T) {
	b, err := Program{Name: "nothing"}.Build(t.Context(), ".")
	require.NoError(t, err)
	assert.Positive(t, b.Took)
	assert.Positive(t, b.CPU)
	assert.Positive(t, b.Bytes)
	assert.Greater(t, b.Packages, 10, "those of the runtime")
	_, err = Program{Name: "missing"}.Build(t.Context(), ".")
	require.ErrorContains(t, err, "build missing")
}
