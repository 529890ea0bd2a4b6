package heard

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestErrorsAreHeardAndPassedOn(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	assert.Same(t, first, Error(first))
	var all []error
	Listen(func(err error) { all = append(all, err) })
	assert.Same(t, second, Error(second))
	assert.NoError(t, Error(nil))
	Listen(nil)
	assert.Same(t, first, Error(first))
	assert.Equal(t, []error{second}, all)
}
