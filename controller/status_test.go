package controller_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/controller"
)

func TestAStatusMarshalsToJSONWithTheTextOfErrors(t *testing.T) {
	text, err := json.Marshal(controller.Status{
		Name: "apps", Roots: 2, Running: 1, Reconciles: 7, Errors: 3,
		Failing: []controller.Failure{{Key: "a/b", Attempt: 3, Err: errors.New("no")}, {Key: "c"}},
	})
	require.NoError(t, err)
	assert.JSONEq(t, `{"name": "apps", "watches": {"queries": null}, "roots": 2, "running": 1, "reconciles": 7, "errors": 3,
		"failing": [{"key": "a/b", "attempt": 3, "error": "no"}, {"key": "c", "attempt": 0}]}`, string(text))
}
