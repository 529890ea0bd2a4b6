package kates

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEveryOperationHasItsWordingAndItsPreconditions(t *testing.T) {
	bare := &object{Unstructured: &Unstructured{Object: map[string]any{}}}
	for op, want := range map[operation]struct {
		text           string
		preconditioned bool
	}{
		opGet: {"get", true}, opList: {"list", true}, opObserve: {"observe", true},
		opCreate: {"create", false}, opUpsert: {"upsert", false}, opUpdate: {"update", true},
		opUpdateStatus: {"update the status of", true}, opPatch: {"patch", true},
		opApply: {"apply", true}, opDelete: {"delete", true}, opDeleteAll: {"delete all", true},
		opPrune: {"prune", true}, opWithdraw: {"withdraw from", true}, opModify: {"modify", true},
		opModifyStatus: {"modify the status of", true}, opSetStatus: {"set the status of", true},
		{toCreate, "eviction"}: {"create the eviction of", true},
		{toCreate, "binding"}:  {"create the binding of", false},
		{toPatch, "scale"}:     {"patch the scale of", true},
		{toGet, "scale"}:       {"get the scale of", true},
	} {
		assert.Equal(t, want.text, op.String())
		assert.Equal(t, want.preconditioned, op.preconditioned(bare), want.text)
		assert.Equal(t, op != opCreate && op != opUpsert, op.takesOptions(), want.text)
	}
}
