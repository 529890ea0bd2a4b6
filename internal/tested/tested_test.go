package tested

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestABubbleIsFoundOutFromWithin(t *testing.T) {
	assert.False(t, InBubble())
	synctest.Test(t, func(t *testing.T) {
		assert.True(t, InBubble())
		within := make(chan bool)
		go func() { within <- InBubble() }()
		assert.True(t, <-within)
	})
	assert.False(t, InBubble())
}
