package suite

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/kates"
)

// realScenarios need what only an API server has.
var realScenarios = []scenario{
	{"AStaleUpdateIsAConflict", staleUpdate},
	{"UpsertRetriesConflicts", racingUpserts},
	{"UpdateStatusWritesNothingButTheStatus", statusOnly},
	{"AModifyOfAStatusThatIsASubresourceIsAnErrorAndTheRestIsStored", modifiesStatus},
	{"AConflictOfFieldManagersNamesTheOptionThatTakesTheFieldsOver", ownershipConflicts},
	{"G4AppliedFieldsAreInTheVeryNextUpdate", apply},
	{"G4ATerminatingObjectIsShownUntilItsLastFinalizerIsGone", finalizers},
	{"G4GeneratedNamesAreInTheVeryNextUpdate", generatedNames},
	{"AFieldThatTheServerDoesNotSelectByIsAnErrorAtWatch", unknownField},
	{"DryRunsLeaveNoTrace", dryRun},
	{"PreconditionsThatDoNotHoldAreConflicts", preconditions},
	{"G7ARecreatedObjectIsADeleteAndAnAdd", recreated},
	{"SyncReturnsWhenEveryWatchIsAsNewAsTheServer", syncs},
	{"ListTakesFieldSelectors", listByField},
	{"SubresourcesOfBadInputAreAClearError", subresourcesInvalid},
	{"AContextThatIsOverEndsTheCallItWasGivenTo", callContexts},
	{"TheUIDOfTheClusterIsThatOfItsNamespaceKubeSystem", clusterUID},
}

func staleUpdate(t *testing.T, e *env) {
	var first corev1.ConfigMap
	require.NoError(t, e.client.Create(e.ctx, e.configMap("cm", "n", "1"), &first))
	e.foreignUpdate(e.configMap("cm", "n", "2"))
	target := e.configMap("untouched")
	err := e.client.Update(e.ctx, &first, target)
	assert.True(t, kates.IsConflict(err), "%v", err)
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	assert.Equal(t, e.configMap("untouched"), target)
}

func racingUpserts(t *testing.T, e *env) {
	var writers sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		writers.Go(func() {
			source := e.configMap("cm", "same", "data")
			source.Labels = map[string]string{name: "yes"}
			assert.NoError(t, e.client.Upsert(e.ctx, source, source, nil))
		})
	}
	writers.Wait()
	stored, err := e.stored(e.configMap("cm"))
	require.NoError(t, err)
	assert.Len(t, stored.GetLabels(), 5)
}

func statusOnly(t *testing.T, e *env) {
	host := e.host("h", "a.example")
	require.NoError(t, e.client.Create(e.ctx, host, &host))
	host["spec"] = map[string]any{"hostname": "ignored.example"}
	host["status"] = map[string]any{"state": "Ready"}
	require.NoError(t, e.client.UpdateStatus(e.ctx, host, &host))
	assert.Equal(t, map[string]any{"hostname": "a.example"}, host["spec"])
	assert.Equal(t, map[string]any{"state": "Ready"}, host["status"])
	host["status"] = map[string]any{"state": "Ignored"}
	require.NoError(t, e.client.Update(e.ctx, host, &host))
	assert.Equal(t, map[string]any{"state": "Ready"}, host["status"])
}

func apply(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	var got corev1.ResourceQuota
	require.NoError(t, e.client.Apply(e.ctx, e.quota("q", "1"), &got))
	now(t, snapshots, snap)
	assert.Equal(t, []string{"add q"}, deltaNames(snap.Deltas))
	require.NoError(t, e.client.Apply(e.ctx, e.quota("q", "2"), &got))
	now(t, snapshots, snap)
	assert.Equal(t, "2", shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())

	err := e.client.Apply(e.ctx, e.quota("q", "3"), nil, kates.FieldManager("another"))
	assert.True(t, kates.IsConflict(err), "%v", err)
	unchanged(t, snapshots, snap)
	require.NoError(t, e.client.Apply(e.ctx, e.quota("q", "3"), nil, kates.FieldManager("another"), kates.ForceOwnership()))
	now(t, snapshots, snap)
	assert.Equal(t, "3", shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())

	require.NoError(t, e.client.Get(e.ctx, &got, &got))
	require.NotEmpty(t, got.ManagedFields)
	require.NoError(t, e.client.Apply(e.ctx, e.host("h", "a.example"), nil), "an untyped one")
	e.awaitOnly(snapshots, snap, "marker")
}

func finalizers(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	quota := e.quota("q", "1")
	quota.Finalizers = []string{"example.com/hold"}
	require.NoError(t, e.client.Create(e.ctx, quota, nil))
	require.NoError(t, e.client.Delete(e.ctx, quota, nil))
	now(t, snapshots, snap)
	assert.NotNil(t, shown(t, snap.ResourceQuotas, "q").DeletionTimestamp)

	require.NoError(t, e.client.Patch(e.ctx, quota, kates.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil))
	now(t, snapshots, snap)
	assert.Empty(t, snap.ResourceQuotas)
	assert.Equal(t, []string{"delete q"}, deltaNames(snap.Deltas))
	_, err := e.stored(quota)
	assert.True(t, kates.IsNotFound(err), "%v", err)
	e.awaitOnly(snapshots, snap, "marker")
}

func generatedNames(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	for n := range 3 {
		quota := e.quota("", "1")
		quota.GenerateName = "made-"
		var got corev1.ResourceQuota
		require.NoError(t, e.client.Create(e.ctx, quota, &got))
		now(t, snapshots, snap)
		assert.Len(t, snap.ResourceQuotas, n+1)
		assert.Equal(t, []string{"add " + got.Name}, deltaNames(snap.Deltas))
	}
	e.awaitOnly(snapshots, snap, "marker")
}

func unknownField(t *testing.T, e *env) {
	_, err := e.client.Watch(e.ctx, kates.Query{Name: "Hosts", Kind: "hosts", FieldSelector: "spec.nosuchfield=x"})
	require.ErrorContains(t, err, "Hosts")
}

func dryRun(t *testing.T, e *env) {
	e.foreignCreate(e.quota("q", "1"))
	snapshots, snap := e.watchQuotas()
	var got corev1.ResourceQuota
	require.NoError(t, e.client.Create(e.ctx, e.quota("other", "1"), &got, kates.DryRun()))
	assert.Equal(t, "other", got.Name)
	require.NoError(t, e.client.Patch(e.ctx, e.quota("q", "1"), kates.MergePatchType, []byte(`{"spec":{"hard":{"pods":"2"}}}`), &got, kates.DryRun()))
	assert.Equal(t, "2", got.Spec.Hard.Pods().String())
	require.NoError(t, e.client.Upsert(e.ctx, e.quota("q", "2"), e.quota("q", "2"), nil, kates.DryRun()))
	require.NoError(t, e.client.Apply(e.ctx, e.quota("q2", "2"), nil, kates.DryRun()))
	require.NoError(t, e.client.Delete(e.ctx, e.quota("q", "1"), nil, kates.DryRun()))
	unchanged(t, snapshots, snap)
	e.awaitOnly(snapshots, snap, "marker")
	assert.Equal(t, "1", shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())
}

func preconditions(t *testing.T, e *env) {
	var got corev1.ConfigMap
	require.NoError(t, e.client.Create(e.ctx, e.configMap("cm"), &got))
	patch := []byte(`{"data":{"a":"1"}}`)
	for name, option := range map[string]kates.WriteOption{"uid": kates.IfUID("another"), "version": kates.IfResourceVersion("1")} {
		for verb, err := range map[string]error{
			"delete": e.client.Delete(e.ctx, e.configMap("cm"), nil, option),
			"update": e.client.Update(e.ctx, e.configMap("cm"), nil, option),
			"patch":  e.client.Patch(e.ctx, e.configMap("cm"), kates.MergePatchType, patch, nil, option),
		} {
			assert.True(t, kates.IsConflict(err), "%s with another %s: %v", verb, name, err)
		}
	}
	require.NoError(t, e.client.Delete(e.ctx, e.configMap("cm"), nil, kates.IfUID(got.UID), kates.IfResourceVersion(got.ResourceVersion)))
}

func recreated(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	for _, pods := range []string{"1", "2", "3"} {
		require.NoError(t, e.client.Create(e.ctx, e.quota("q", pods), nil))
		now(t, snapshots, snap)
		assert.Equal(t, pods, shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())
		require.NoError(t, e.client.Delete(e.ctx, e.quota("q", pods), nil))
		require.NoError(t, e.client.Create(e.ctx, e.quota("q", pods+"0"), nil))
		now(t, snapshots, snap)
		assert.Equal(t, []string{"delete q", "add q"}, deltaNames(snap.Deltas))
		assert.NotEqual(t, snap.Deltas[0].UID, snap.Deltas[1].UID)
		assert.Equal(t, pods+"0", shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())
		require.NoError(t, e.client.Delete(e.ctx, e.quota("q", pods), nil))
		now(t, snapshots, snap)
	}
	e.awaitOnly(snapshots, snap, "marker")
}

func syncs(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	for _, name := range []string{"a", "b", "c"} {
		e.foreignCreate(e.quota(name, "1"))
		require.NoError(t, e.client.Sync(e.ctx))
		now(t, snapshots, snap)
		require.NotNil(t, byName(snap.ResourceQuotas, name))
	}
}

func callContexts(t *testing.T, e *env) {
	over, cancel := contextThatIsOver(e.ctx)
	defer cancel()
	require.ErrorIs(t, e.client.Create(over, e.configMap("cm"), nil), context.DeadlineExceeded)
	_, err := e.stored(e.configMap("cm"))
	assert.True(t, kates.IsNotFound(err), "%v", err)
}

func subresourcesInvalid(t *testing.T, e *env) {
	cm := e.configMap("cm")
	for want, err := range map[string]error{
		"not the name of a subresource": e.client.GetSubresource(e.ctx, cm, "pods/scale", nil),
		"is a connection":               e.client.CreateSubresource(e.ctx, cm, "exec", cm, nil),
		"nil":                           e.client.CreateSubresource(e.ctx, cm, "scale", nil, nil),
		"no apiVersion or kind":         e.client.UpdateSubresource(e.ctx, cm, "scale", map[string]any{}, nil),
		"of another object":             e.client.UpdateSubresource(e.ctx, cm, "scale", e.configMap("another"), nil),
		"without a name":                e.client.PatchSubresource(e.ctx, &corev1.ConfigMap{}, "scale", kates.MergePatchType, nil, nil),
		"not a pointer":                 e.client.GetSubresource(e.ctx, cm, "scale", corev1.ConfigMap{}),
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, e.client.Create(e.ctx, cm, nil))
	err := e.client.GetSubresource(e.ctx, cm, "scale", nil)
	assert.True(t, kates.IsNotFound(err), "%v", err)
	assert.ErrorContains(t, err, "get the scale of configmaps")
}

func clusterUID(t *testing.T, e *env) {
	namespace := &corev1.Namespace{}
	namespace.Name = "kube-system"
	require.NoError(t, e.client.Get(e.ctx, namespace, namespace))
	uid, err := e.client.ClusterUID(e.ctx)
	require.NoError(t, err)
	assert.Equal(t, namespace.UID, uid)
	require.NotEmpty(t, uid)
}
