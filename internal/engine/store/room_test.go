package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// TestAStreamIsBoundedWhereNothingIsSaid: by lists, and by events of a watch.
func TestAStreamIsBoundedWhereNothingIsSaid(t *testing.T) {
	for _, most := range []int{0, 3} {
		room := NewRoom(most)
		assert.Equal(t, source.ObjectsMost, room.each)
		room.each = 3
		s := New(room, time.Second, true)
		object := func(i int) (object.Key, object.Object) {
			o := &unstructured.Unstructured{}
			o.SetName(fmt.Sprint(i))
			return object.Key{Name: o.GetName()}, o
		}
		for i := range 6 {
			key, o := object(i)
			assert.Equal(t, i < 3, s.Put(key, o), i)
			again, _ := object(0)
			assert.True(t, s.Put(again, o), "one that is held already")
		}
		assert.Equal(t, most, room.Taken())
		assert.False(t, room.Exceeds(3))
		assert.True(t, room.Exceeds(4))
		if room.Shared() {
			require.NoError(t, s.Admit(3))
			assert.ErrorIs(t, s.Admit(4), source.ErrTooMany)
		}
		s.Close()
		assert.Zero(t, room.Taken())
	}
}

// TestANamesakeWithoutRoomTakesNone: it is not held, and counts for nothing.
func TestANamesakeWithoutRoomTakesNone(t *testing.T) {
	room := NewRoom(1)
	s := New(room, time.Second, true)
	one := func(uid string) (object.Key, object.Object) {
		o := &unstructured.Unstructured{}
		o.SetName("a\uFFFD")
		o.SetUID(types.UID(uid))
		o.SetResourceVersion("1")
		return object.KeyOf(o), o
	}
	key, o := one("u1")
	require.True(t, s.Add(key, nil, o))
	_, second := one("u2")
	assert.False(t, s.Add(key, o, second))
	assert.Equal(t, 1, s.Size())
	assert.Same(t, o, s.Objects[key])
	s.SetListSize(0)
	assert.Equal(t, 1, room.Taken())
}
