package applied

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/object"
)

func listed(r *Recollection, worth int, err error, names ...string) {
	r.objects = map[object.Key]Recalled{}
	for _, name := range names {
		r.objects[object.Key{Name: name}] = Recalled{UID: types.UID(name), RV: "5"}
	}
	r.at, r.worth, r.err = time.Now(), worth, err
	close(r.done)
}

func TestAListOfWhatWasAppliedIsMadeWhereItIsWorthIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Recollections
		of := Recollectable{Storage: "configmaps"}
		for range 2 { // of 32 objects it is known already
			_, mine := c.find(of, func() int { return 32 })
			require.False(t, mine)
		}
		r, mine := c.find(of, func() int { return 32 })
		require.True(t, mine, "the third that is not known")
		same, mine := c.find(of, nil)
		assert.Same(t, r, same)
		assert.False(t, mine, "one lists, the others wait")
		listed(r, 2, nil, "a", "b", "c", "d")

		for _, key := range []string{"a", "b", "c"} {
			r, mine = c.find(of, nil)
			require.False(t, mine)
			o, ok := c.Take(r, object.Key{Name: key}, objectAt(types.UID(key), "4"))
			require.True(t, ok)
			assert.Equal(t, "5", o.RV, "it may be newer than what the watch has shown")
		}
		_, ok := c.Take(r, object.Key{Name: "a"}, objectAt("a", "5"))
		assert.False(t, ok, "who has asked once remembers it")
		_, ok = c.Take(r, object.Key{Name: "d"}, objectAt("d", "6"))
		assert.False(t, ok, "it is older")
		for range 2 {
			_, mine = c.find(of, nil)
			require.False(t, mine)
		}
		r, mine = c.find(of, nil)
		require.True(t, mine, "too many were not in it")

		listed(r, 0, errors.New("broken"))
		_, mine = c.find(of, nil)
		require.False(t, mine, "not at once")
		time.Sleep(recollectionAge)
		r, mine = c.find(of, nil)
		require.True(t, mine)
		listed(r, 0, nil, "a")
		c.drop(r)
		_, ok = c.Take(r, object.Key{Name: "a"}, objectAt("a", "5"))
		assert.False(t, ok, "nobody has asked for it for long")
	})
}

func TestG11WhatWasListedOfAppliesIsLetGoWithItsTimerWhenTheClientCloses(t *testing.T) {
	found := map[object.Key]Recalled{{Name: "a"}: {UID: "a", RV: "5"}}
	recollects := func(c *Recollections) *Recollection {
		r, _ := c.find(Recollectable{}, func() int { return 0 })
		c.keep(Recollectable{}, r, found, nil, true)
		close(r.done)
		return r
	}
	var c Recollections
	first := recollects(&c)
	for range first.worth {
		c.find(Recollectable{}, nil)
	}
	second := recollects(&c)
	require.NotSame(t, first, second)
	assert.False(t, first.timer.Stop(), "the new one has them")
	assert.Nil(t, first.objects)
	assert.NotNil(t, second.objects)
	c.Close()
	assert.False(t, second.timer.Stop())
	assert.Nil(t, second.objects)
	c = Recollections{}
	c.Close()
	late := recollects(&c)
	assert.Nil(t, late.timer)
	assert.Nil(t, late.objects)
}

func TestAnotherObjectOfTheNameIsNotRecalled(t *testing.T) {
	var c Recollections
	r := &Recollection{done: make(chan struct{})}
	listed(r, 0, nil, "a")
	_, ok := c.Take(r, object.Key{Name: "a"}, objectAt("another", "4"))
	assert.False(t, ok)
}
