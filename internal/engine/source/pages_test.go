package source

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestAListWithoutAnEndEnds: also where no item is kept, or the server says the same again.
func TestAListWithoutAnEndEnds(t *testing.T) {
	taken := 0
	w := newWay(func(runtime.Object) error { taken++; return nil })
	w.all = ObjectsMost - 2
	o := &unstructured.Unstructured{}
	require.NoError(t, w.put(o))
	require.NoError(t, w.put(o))
	err := w.put(o)
	require.ErrorIs(t, err, ErrTooMany)
	assert.ErrorContains(t, err, "10000000")
	assert.ErrorContains(t, err, "WithMaxObjects")
	assert.Equal(t, 2, taken)
}

func TestATokenThatIsSentBackIsBounded(t *testing.T) {
	w := newWay(func(runtime.Object) error { return nil })
	require.NoError(t, w.goesOn(strings.Repeat("x", tokenMost)))
	assert.ErrorContains(t, w.goesOn(strings.Repeat("x", tokenMost+1)), "65536 are the most")
}
