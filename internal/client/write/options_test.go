package write

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/client/core"
)

func TestEveryOperationHasItsWordingAndItsPreconditions(t *testing.T) {
	bare := &core.Subject{Unstructured: &unstructured.Unstructured{Object: map[string]any{}}}
	for op, want := range map[Operation]struct {
		text           string
		preconditioned bool
	}{
		OpGet: {"get", true}, OpList: {"list", true}, OpObserve: {"observe", true},
		OpCreate: {"create", false}, OpUpsert: {"upsert", false}, OpUpdate: {"update", true},
		OpUpdateStatus: {"update the status of", true}, OpPatch: {"patch", true},
		OpApply: {"apply", true}, OpDelete: {"delete", true}, OpDeleteAll: {"delete all", true},
		OpPrune: {"prune", true}, OpWithdraw: {"withdraw from", true}, OpModify: {"modify", true},
		OpModifyStatus:         {"modify the status of", true},
		{toCreate, "eviction"}: {"create the eviction of", true},
		{toCreate, "binding"}:  {"create the binding of", false},
		{toPatch, "scale"}:     {"patch the scale of", true},
		{toGet, "scale"}:       {"get the scale of", true},
	} {
		assert.Equal(t, want.text, op.String())
		assert.Equal(t, want.preconditioned, op.preconditioned(bare), want.text)
		assert.Equal(t, op != OpCreate && op != OpUpsert, op.takesOptions(), want.text)
	}
}
