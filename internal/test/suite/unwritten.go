package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kates-go/kates/kates"
)

// modifiesStatus changes a status that only its subresource writes, in every form.
func modifiesStatus(t *testing.T, e *env) {
	e.foreignCreate(e.quota("q", "9"), e.host("h", "a.example"))
	snapshots, snap := e.watchQuotas()
	tell := func(err error, of string) {
		t.Helper()
		require.ErrorIs(t, err, kates.ErrDropped)
		assert.ErrorContains(t, err, e.ns+"/"+of)
		assert.ErrorContains(t, err, "nothing of what was changed there is stored; ModifyStatus writes a status")
	}
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}
	_, err := kates.Modify(e.ctx, e.client, e.quota("q", "9"), func(q *corev1.ResourceQuota) error {
		q.Status.Hard = hard
		return nil
	})
	tell(err, "q")
	unchanged(t, snapshots, snap)
	_, err = kates.Modify(e.ctx, e.client, e.quota("q", "9"), func(q *corev1.ResourceQuota) error {
		q.Status.Hard, q.Labels = hard, map[string]string{"a": "b"}
		return nil
	})
	tell(err, "q")
	now(t, snapshots, snap)
	assert.Equal(t, map[string]string{"a": "b"}, shown(t, snap.ResourceQuotas, "q").Labels, "the rest is stored")
	assert.Empty(t, shown(t, snap.ResourceQuotas, "q").Status.Hard)

	_, err = kates.Modify(e.ctx, e.client, e.host("h", ""), func(h *kates.Unstructured) error {
		h.Object["status"] = map[string]any{"state": "Ready"}
		return nil
	})
	tell(err, "h")
	_, err = kates.ModifyStatus(e.ctx, e.client, e.host("h", ""), func(h *map[string]any) error {
		(*h)["status"] = map[string]any{"state": "Ready"}
		return nil
	})
	require.NoError(t, err)
	for what, change := range map[string]func(h map[string]any){
		"altered": func(h map[string]any) { h["status"] = map[string]any{"state": "Failed"} },
		"removed": func(h map[string]any) { delete(h, "status") },
	} {
		_, err = kates.Modify(e.ctx, e.client, e.host("h", ""), func(h *map[string]any) error { change(*h); return nil })
		require.ErrorIs(t, err, kates.ErrDropped, what)
	}
	_, err = kates.Modify(e.ctx, e.client, e.host("h", ""), func(h *map[string]any) error {
		(*h)["spec"] = map[string]any{"hostname": "b.example"}
		(*h)["status"] = map[string]any{"state": "Ready"}
		return nil
	})
	require.NoError(t, err, "the status is as it was")
}

// ownershipConflicts applies fields that other field managers own. That of an owner reference is
// met when a set adopts an object.
func ownershipConflicts(t *testing.T, e *env) {
	tell := func(err error, field string) {
		t.Helper()
		require.True(t, kates.IsConflict(err), "%v", err)
		assert.ErrorContains(t, err, field)
		assert.ErrorContains(t, err, "(ForceOwnership takes over what other field managers own)")
	}
	require.NoError(t, e.client.Apply(e.ctx, e.quota("q", "1"), nil))
	tell(e.client.Apply(e.ctx, e.quota("q", "2"), nil, kates.FieldManager("another")), ".spec.hard.pods")

	root := e.root("root")
	theirs := e.configMap("free", "k", "v")
	require.NoError(t, kates.AddOwnerReference(root, theirs))
	e.foreignCreate(theirs)
	adopting := set(root, e.configMap("free", "k", "v"))
	adopting.Adopt = true
	_, err := e.client.ApplyOwned(e.ctx, adopting)
	tell(err, ".metadata.ownerReferences[uid=")
	assert.ErrorContains(t, err, e.ns+"/free")
	result, err := e.client.ApplyOwned(e.ctx, adopting, kates.ForceOwnership())
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap free"}, named(result.Applied))
	_, err = e.client.ApplyOwned(e.ctx, set(root, e.configMap("free", "k", "other")), kates.IfUID("x"))
	assert.NotContains(t, err.Error(), "ForceOwnership")

	var stored corev1.ConfigMap
	require.NoError(t, e.client.Create(e.ctx, e.configMap("cm", "n", "1"), &stored))
	e.foreignUpdate(e.configMap("cm", "n", "2"))
	err = e.client.Update(e.ctx, &stored, nil)
	require.True(t, kates.IsConflict(err), "%v", err)
	assert.NotContains(t, err.Error(), "ForceOwnership", "it would not help")
}
