package stream

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// TestAStreamIsBoundedWhereNothingIsSaid: by lists, and by events of a watch.
func TestAStreamIsBoundedWhereNothingIsSaid(t *testing.T) {
	for _, most := range []int{0, 3} {
		set := New(Config{ObjectsMax: most})
		defer set.Close()
		assert.Equal(t, source.ObjectsMost, set.room.each)
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
		assert.ErrorIs(t, s.admit(4), source.ErrTooMany)
	}
}
