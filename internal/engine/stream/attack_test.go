package stream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/object"
)

// TestAListWithoutAnEndEnds: also where no item is kept, or the server says the same again.
func TestAListWithoutAnEndEnds(t *testing.T) {
	taken := 0
	w := newWay(func(runtime.Object) error { taken++; return nil })
	w.all = objectsMost - 2
	o := &unstructured.Unstructured{}
	require.NoError(t, w.put(o))
	require.NoError(t, w.put(o))
	err := w.put(o)
	require.ErrorIs(t, err, errFull)
	assert.ErrorContains(t, err, "10000000")
	assert.ErrorContains(t, err, "WithMaxObjects")
	assert.Equal(t, 2, taken)
}

func TestATokenThatIsSentBackIsBounded(t *testing.T) {
	w := newWay(func(runtime.Object) error { return nil })
	require.NoError(t, w.goesOn(strings.Repeat("x", tokenMost)))
	assert.ErrorContains(t, w.goesOn(strings.Repeat("x", tokenMost+1)), "65536 are the most")
}

// TestAStreamIsBoundedWhereNothingIsSaid: by lists, and by events of a watch.
func TestAStreamIsBoundedWhereNothingIsSaid(t *testing.T) {
	for _, most := range []int{0, 3} {
		set := New(Config{ObjectsMax: most})
		defer set.Close()
		assert.Equal(t, objectsMost, set.room.each)
		set.room.each = 3
		s := &stream{set: set, store: store{objects: make(map[object.Key]object.Object), namesakes: &namesakes{}}}
		object := func(i int) (object.Key, object.Object) {
			o := &unstructured.Unstructured{}
			o.SetName(fmt.Sprint(i))
			return object.Key{Name: o.GetName()}, o
		}
		for i := range 6 {
			key, o := object(i)
			s.mu.Lock()
			assert.Equal(t, i < 3, s.put(key, o), i)
			again, _ := object(0)
			assert.True(t, s.put(again, o), "one that is held already")
			s.mu.Unlock()
		}
		require.NoError(t, s.admit(3))
		assert.ErrorIs(t, s.admit(4), errFull)
	}
}
