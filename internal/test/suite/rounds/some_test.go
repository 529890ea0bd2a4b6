package rounds

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSomeAreAllCasesAndUnderTheRaceDetectorEveryFourth(t *testing.T) {
	assert.Empty(t, Some([]int(nil)))
	assert.Equal(t, []int{7}, Some([]int{7}))
	many := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	if each == 1 {
		assert.Equal(t, many, Some(many))
		return
	}
	assert.Equal(t, []int{0, 4, 8}, Some(many))
}
