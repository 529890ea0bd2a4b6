package write

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/client/core"
)

// TestAFenceDoesNotReplaceTheVersionThatAnApplyIsBoundTo: the client may know a newer version
// than the caller has read. With it the apply would overwrite the writes in between.
func TestAFenceDoesNotReplaceTheVersionThatAnApplyIsBoundTo(t *testing.T) {
	read := &core.Subject{Unstructured: &unstructured.Unstructured{Object: map[string]any{}}}
	for _, op := range []Operation{OpApply, OpUpdate, OpUpdateStatus} {
		read.SetResourceVersion("")
		assert.True(t, op.preconditioned(read), op)
		read.SetResourceVersion("5")
		assert.False(t, op.preconditioned(read), op)
	}
	known, uid := "9", types.UID("known")
	read.SetUID("another")
	for _, w := range []Options{{Version: &known}, {UID: &uid}} {
		assert.True(t, apierrors.IsConflict(w.precondition(read, read.Unstructured)))
		_, err := w.preconditionPatch(read, types.MergePatchType, []byte(`{"metadata":{"uid":"another","resourceVersion":"5"}}`))
		assert.True(t, apierrors.IsConflict(err))
	}
	assert.Equal(t, "5", read.GetResourceVersion())
}
