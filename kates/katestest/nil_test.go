package katestest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/kates/katestest"
)

func TestANilOptionIsAnError(t *testing.T) {
	_, err := katestest.NewFake(nil)
	assert.ErrorContains(t, err, "an option is nil")
	_, err = katestest.NewFake(katestest.WithClientOptions(nil))
	assert.ErrorContains(t, err, "an option is nil")
}
