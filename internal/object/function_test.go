package object_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/object"
)

func TestFunctionsAreToldApartByCodeAndVariables(t *testing.T) {
	adds := func(n int) func(int) int { return func(x int) int { return x + n } }
	one, two := adds(1), adds(2)
	same := one
	assert.Equal(t, object.FuncIDOf(one), object.FuncIDOf(same))
	assert.NotEqual(t, object.FuncIDOf(one), object.FuncIDOf(two), "one code, other variables")
	assert.NotEqual(t, object.FuncIDOf(one), object.FuncIDOf(func(x int) int { return x }))
	assert.Zero(t, object.FuncIDOf[func()](nil))
}
