package suite

import (
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

var modifyScenarios = []scenario{
	{"G4ModifyIsInTheVeryNextUpdate", modify},
	{"ModifyOfUntypedObjectsSeesAllOfThem", modifyUntyped},
	{"ModifyWritesNothingWhereNothingChangesOrTheChangeFails", modifyNothing},
	{"ModifyChangesNoIdentity", modifyIdentity},
	{"G4ModifyStatusIsInTheVeryNextUpdate", modifyStatus},
	{"ModifyOfBadInputIsAClearError", modifyInvalid},
}

func modify(t *testing.T, e *env) {
	e.foreignCreate(e.quota("q", "1"))
	snapshots, snap := e.watchQuotas()
	resource := e.quota("q", "7")
	for n := int64(2); n < 5; n++ {
		got, err := kates.Modify(e.ctx, e.client, resource, func(q *corev1.ResourceQuota) error {
			pods := q.Spec.Hard[corev1.ResourcePods]
			pods.Set(pods.Value() + 1)
			q.Spec.Hard[corev1.ResourcePods] = pods
			q.ManagedFields, q.ResourceVersion = nil, "" // the server sets these
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, n, got.Spec.Hard.Pods().Value())
		now(t, snapshots, snap)
		assert.Equal(t, []string{"update q"}, deltaNames(snap.Deltas))
		assert.Equal(t, strconv.FormatInt(n, 10), shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())
		// the result belongs to the caller
		got.Spec.Hard[corev1.ResourcePods] = e.quota("", "99").Spec.Hard[corev1.ResourcePods]
	}
	assert.Equal(t, e.quota("q", "7"), resource, "what is given is not modified")
	e.awaitOnly(snapshots, snap, "marker")
	assert.Equal(t, "4", shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())
}

func modifyUntyped(t *testing.T, e *env) {
	host := e.host("h", "a.example")
	require.NoError(t, e.client.Create(e.ctx, host, nil))
	asMap, err := kates.Modify(e.ctx, e.client, host, func(h *map[string]any) error {
		(*h)["spec"].(map[string]any)["tlsSecret"] = map[string]any{"name": "s"}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"hostname": "a.example", "tlsSecret": map[string]any{"name": "s"}}, (*asMap)["spec"])
	u, err := kates.Modify(e.ctx, e.client, host, func(u *kates.Unstructured) error {
		u.SetLabels(map[string]string{"l": "m"})
		delete(u.Object["spec"].(map[string]any), "hostname")
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"tlsSecret": map[string]any{"name": "s"}}, u.Object["spec"])
	own, err := kates.Modify(e.ctx, e.client, host, func(h *hostType) error { h.Spec.Hostname = "b.example"; return nil })
	require.NoError(t, err)
	assert.Equal(t, "b.example", own.Spec.Hostname)
	stored, err := e.stored(host)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"hostname": "b.example", "tlsSecret": map[string]any{"name": "s"}}, stored.Object["spec"], "hostType does not know the secret")
	assert.Equal(t, map[string]string{"l": "m"}, stored.GetLabels())
}

func modifyNothing(t *testing.T, e *env) {
	e.foreignCreate(e.quota("q", "1"))
	snapshots, snap := e.watchQuotas()
	got, err := kates.Modify(e.ctx, e.client, e.quota("q", "9"), func(*corev1.ResourceQuota) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, "1", got.Spec.Hard.Pods().String())
	refused := errors.New("refused")
	got, err = kates.Modify(e.ctx, e.client, e.quota("q", "9"), func(q *corev1.ResourceQuota) error {
		q.Labels = map[string]string{"l": "m"}
		q.Spec.Hard[corev1.ResourcePods] = e.quota("", "5").Spec.Hard[corev1.ResourcePods]
		return refused
	})
	assert.Same(t, refused, err)
	assert.Nil(t, got)
	calls := 0
	_, err = kates.Modify(e.ctx, e.client, e.quota("missing", "9"), func(*corev1.ResourceQuota) error { calls++; return nil })
	assert.True(t, kates.IsNotFound(err), "%v", err)
	assert.ErrorContains(t, err, "modify resourcequotas")
	assert.Zero(t, calls)
	unchanged(t, snapshots, snap)
	assert.Empty(t, shown(t, snap.ResourceQuotas, "q").Labels)
	assert.Equal(t, "1", shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String(), "the change had a copy")
	e.awaitOnly(snapshots, snap, "marker")
}

func modifyIdentity(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm", "a", "1"))
	for field, change := range map[string]func(*corev1.ConfigMap){
		"kind":               func(cm *corev1.ConfigMap) { cm.Kind = "Secret" },
		"metadata.name":      func(cm *corev1.ConfigMap) { cm.Name = "other" },
		"metadata.namespace": func(cm *corev1.ConfigMap) { cm.Namespace = "other" },
		"metadata.uid":       func(cm *corev1.ConfigMap) { cm.UID = "other" },
		"apiVersion":         func(cm *corev1.ConfigMap) { *cm = corev1.ConfigMap{} },
	} {
		_, err := kates.Modify(e.ctx, e.client, e.configMap("cm"), func(cm *corev1.ConfigMap) error { change(cm); return nil })
		assert.ErrorContains(t, err, "its "+field+" was changed")
	}
	stored, err := e.stored(e.configMap("cm"))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "1"}, stored.Object["data"])
}

func modifyStatus(t *testing.T, e *env) {
	e.foreignCreate(e.quota("q", "3"))
	snapshots, snap := e.watchQuotas()
	got, err := kates.ModifyStatus(e.ctx, e.client, e.quota("q", "9"), func(q *corev1.ResourceQuota) error {
		q.Status.Hard = q.Spec.Hard.DeepCopy()
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, "3", got.Status.Hard.Pods().String())
	assert.Equal(t, "3", got.Spec.Hard.Pods().String())
	now(t, snapshots, snap)
	assert.Equal(t, "3", shown(t, snap.ResourceQuotas, "q").Status.Hard.Pods().String())
	_, err = kates.ModifyStatus(e.ctx, e.client, e.quota("q", "9"), func(q *corev1.ResourceQuota) error {
		q.Labels = map[string]string{"l": "m"}
		q.Status.Hard = nil
		return nil
	})
	assert.ErrorContains(t, err, "its metadata was changed as well")
	e.awaitOnly(snapshots, snap, "marker")
	assert.Equal(t, "3", shown(t, snap.ResourceQuotas, "q").Status.Hard.Pods().String())
}

func modifyInvalid(t *testing.T, e *env) {
	nothing := func(*corev1.ConfigMap) error { return nil }
	_, err := kates.Modify(e.ctx, e.client, nil, nothing)
	require.ErrorContains(t, err, "nil")
	_, err = kates.Modify(e.ctx, e.client, &corev1.ConfigMap{}, nothing)
	require.ErrorContains(t, err, "without a name")
	_, err = kates.Modify[corev1.ConfigMap](e.ctx, e.client, e.configMap("cm"), nil)
	require.ErrorContains(t, err, "nil")
	_, err = kates.Modify(e.ctx, e.client, e.configMap("cm"), func(*int) error { return nil })
	require.ErrorContains(t, err, "*int")
	_, err = kates.Modify(e.ctx, e.client, e.configMap("cm"), func(*corev1.Secret) error { return nil })
	require.ErrorContains(t, err, `v1.Secret is /v1, Kind=Secret, not /v1, Kind=ConfigMap`)
	_, err = kates.ModifyStatus(e.ctx, e.client, e.configMap("cm"), func(*corev1.Secret) error { return nil })
	require.ErrorContains(t, err, "v1.Secret is")
	over, cancel := contextThatIsOver(e.ctx)
	defer cancel()
	_, err = kates.Modify(over, e.client, e.configMap("cm"), nothing)
	require.ErrorIs(t, err, over.Err())
}
