package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

// fakeScenarios show what the bare fake cannot do.
var fakeScenarios = []scenario{
	{"ApplyIsANamedErrorOnTheFake", applyOnFake},
	{"SubresourcesButTheStatusAreANamedErrorOnTheFake", subresourcesOnFake},
	{"G4FinalizersAreContentToTheFakeAndKeepNothing", finalizersOnFake},
}

func applyOnFake(t *testing.T, e *env) {
	target := e.configMap("untouched")
	err := e.client.Apply(e.ctx, e.configMap("cm"), target)
	require.ErrorIs(t, err, kates.ErrApplyNotSupported)
	assert.Equal(t, e.configMap("untouched"), target)
	e.foreignCreate(e.configMap("cm"))
	require.ErrorIs(t, e.client.Apply(e.ctx, e.configMap("cm"), nil, kates.ForceOwnership()), kates.ErrApplyNotSupported)
}

func subresourcesOnFake(t *testing.T, e *env) {
	quota := e.quota("q", "1")
	e.foreignCreate(quota)
	patch := []byte(`{"status":{"hard":{"pods":"2"}}}`)
	for what, err := range map[string]error{
		"get":    e.client.GetSubresource(e.ctx, quota, "scale", nil),
		"create": e.client.CreateSubresource(e.ctx, quota, "eviction", quota, nil),
		"status": e.client.CreateSubresource(e.ctx, quota, "status", quota, nil),
		"update": e.client.UpdateSubresource(e.ctx, quota, "scale", nil, nil),
		"patch":  e.client.PatchSubresource(e.ctx, quota, "scale", kates.MergePatchType, patch, nil),
	} {
		require.ErrorIs(t, err, kates.ErrSubresourceNotSupported, what)
	}
	snapshots, snap := e.watchQuotas()
	require.NoError(t, e.client.PatchSubresource(e.ctx, quota, "status", kates.MergePatchType, patch, nil))
	now(t, snapshots, snap)
	assert.Equal(t, "2", shown(t, snap.ResourceQuotas, "q").Status.Hard.Pods().String())
	require.NoError(t, e.client.GetSubresource(e.ctx, quota, "status", &quota))
	quota.Status.Hard = e.quota("", "3").Spec.Hard
	require.NoError(t, e.client.UpdateSubresource(e.ctx, quota, "status", nil, nil))
	now(t, snapshots, snap)
	assert.Equal(t, "3", shown(t, snap.ResourceQuotas, "q").Status.Hard.Pods().String())
}
