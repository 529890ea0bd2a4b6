package suite

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
)

var crudScenarios = []scenario{
	{"TypedObjectsAreCreatedReadUpdatedPatchedAndDeleted", typedCRUD},
	{"UntypedObjectsAreCreatedReadUpdatedPatchedAndDeleted", untypedCRUD},
	{"AStructOfTheCallersOwnIsCreatedReadUpdatedPatchedAndDeleted", ownStructCRUD},
	{"UpdateStatusWritesTheStatus", updateStatus},
	{"JSONPatchesAreApplied", jsonPatch},
	{"UpsertCreatesAndThenMergesEveryTopLevelSection", upsert},
	{"ListTakesSelectorsAndReplacesWhatTheTargetHeld", list},
	{"ClusterScopedObjectsAreWrittenAndRead", clusterScoped},
	{"AFieldManagerThatServersRefuseIsAnErrorBeforeTheRequest", fieldManagers},
}

func typedCRUD(t *testing.T, e *env) {
	var got corev1.ConfigMap
	require.NoError(t, e.client.Create(e.ctx, e.configMap("cm", "a", "1"), &got))
	assert.Equal(t, map[string]string{"a": "1"}, got.Data)
	assert.Equal(t, e.ns, got.Namespace)

	require.NoError(t, e.client.Get(e.ctx, e.configMap("cm"), &got))
	got.Data["b"] = "2"
	var updated *corev1.ConfigMap
	require.NoError(t, e.client.Update(e.ctx, &got, &updated))
	assert.Equal(t, map[string]string{"a": "1", "b": "2"}, updated.Data)

	require.NoError(t, e.client.Patch(e.ctx, updated, kates.MergePatchType, []byte(`{"data":{"a":null,"c":"3"}}`), &got))
	assert.Equal(t, map[string]string{"b": "2", "c": "3"}, got.Data)
	stored, err := e.stored(&got)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"b": "2", "c": "3"}, stored.Object["data"])

	require.NoError(t, e.client.Delete(e.ctx, &got, nil))
	_, err = e.stored(&got)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func untypedCRUD(t *testing.T, e *env) {
	got := map[string]any{}
	require.NoError(t, e.client.Create(e.ctx, e.host("h", "a.example"), &got))
	require.NoError(t, e.client.Get(e.ctx, e.host("h", ""), &got))
	assert.Equal(t, map[string]any{"hostname": "a.example"}, got["spec"])

	got["spec"] = map[string]any{"hostname": "b.example"}
	updated := &unstructured.Unstructured{}
	require.NoError(t, e.client.Update(e.ctx, got, updated))
	assert.Equal(t, map[string]any{"hostname": "b.example"}, updated.Object["spec"])
	assert.Equal(t, "Host", updated.GetKind())

	var patched *kates.Unstructured
	require.NoError(t, e.client.Patch(e.ctx, updated, kates.MergePatchType, []byte(`{"metadata":{"labels":{"l":"1"}}}`), &patched))
	assert.Equal(t, map[string]string{"l": "1"}, patched.GetLabels())

	require.NoError(t, e.client.Delete(e.ctx, patched, nil))
	_, err := e.stored(patched)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func ownStructCRUD(t *testing.T, e *env) {
	host := &hostType{ObjectMeta: e.meta("h")}
	host.APIVersion, host.Kind, host.Spec.Hostname = "getambassador.io/v3alpha1", "Host", "a.example"
	var got hostType
	require.NoError(t, e.client.Create(e.ctx, host, &got))
	assert.Equal(t, "a.example", got.Spec.Hostname)
	got.Spec.Hostname = "b.example"
	require.NoError(t, e.client.Update(e.ctx, got, &got), "a struct, not a pointer to one, as the resource")
	require.NoError(t, e.client.Patch(e.ctx, &got, kates.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`), nil))
	var again *hostType
	require.NoError(t, e.client.Get(e.ctx, got, &again))
	assert.Equal(t, "b.example", again.Spec.Hostname)
	assert.Equal(t, map[string]string{"x": "y"}, again.Annotations)
	require.NoError(t, e.client.Delete(e.ctx, again, nil))
	assert.True(t, kates.IsNotFound(e.client.Get(e.ctx, got, nil)))
}

func updateStatus(t *testing.T, e *env) {
	var quota corev1.ResourceQuota
	require.NoError(t, e.client.Create(e.ctx, e.quota("q", "3"), &quota))
	quota.Status.Hard = quota.Spec.Hard.DeepCopy()
	var got corev1.ResourceQuota
	require.NoError(t, e.client.UpdateStatus(e.ctx, &quota, &got))
	assert.Equal(t, "3", got.Status.Hard.Pods().String())

	host := e.host("h", "a.example")
	require.NoError(t, e.client.Create(e.ctx, host, &host))
	host["status"] = map[string]any{"state": "Ready"}
	require.NoError(t, e.client.UpdateStatus(e.ctx, host, nil))
	stored, err := e.stored(host)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"state": "Ready"}, stored.Object["status"])
}

func jsonPatch(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm", "a", "1"))
	var got corev1.ConfigMap
	require.NoError(t, e.client.Patch(e.ctx, e.configMap("cm"), kates.JSONPatchType,
		[]byte(`[{"op":"test","path":"/data/a","value":"1"},{"op":"replace","path":"/data/a","value":"2"}]`), &got))
	assert.Equal(t, map[string]string{"a": "2"}, got.Data)
	require.Error(t, e.client.Patch(e.ctx, e.configMap("cm"), kates.JSONPatchType, []byte(`[{"op":"test","path":"/data/a","value":"1"}]`), nil))
}

func upsert(t *testing.T, e *env) {
	source := e.configMap("cm", "a", "1")
	source.Labels, source.Annotations = map[string]string{"mine": "1"}, map[string]string{"mine": "1"}
	require.NoError(t, e.client.Upsert(e.ctx, e.configMap("cm"), source, nil), "creates")

	foreign, err := e.stored(source)
	require.NoError(t, err)
	foreign.SetLabels(map[string]string{"mine": "0", "theirs": "1"})
	foreign.SetAnnotations(map[string]string{"theirs": "1"})
	foreign.Object["data"] = map[string]any{"z": "26"}
	e.foreignUpdate(foreign)

	source.BinaryData = map[string][]byte{"b": {1}}
	var got corev1.ConfigMap
	require.NoError(t, e.client.Upsert(e.ctx, e.configMap("cm"), source, &got), "merges")
	assert.Equal(t, map[string]string{"mine": "1", "theirs": "1"}, got.Labels)
	assert.Equal(t, map[string]string{"mine": "1", "theirs": "1"}, got.Annotations)
	assert.Equal(t, map[string]string{"a": "1"}, got.Data)
	assert.Equal(t, map[string][]byte{"b": {1}}, got.BinaryData)
}

func list(t *testing.T, e *env) {
	e.foreignCreate(e.labelled("a", "app", "web"), e.labelled("b", "app", "web"), e.labelled("c", "app", "db"))
	got := []*corev1.ConfigMap{e.configMap("stale"), e.configMap("stale"), e.configMap("stale"), e.configMap("stale")}
	require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: "cm", Namespace: e.ns, LabelSelector: "app=web"}, &got))
	assert.ElementsMatch(t, []string{"a", "b"}, names(got))
	var values []corev1.ConfigMap
	require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: "ConfigMap", Namespace: e.ns, LabelSelector: "app!=web"}, &values))
	require.Len(t, values, 1)
	assert.Equal(t, "c", values[0].Name)
	var untyped []map[string]any
	require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: "configmaps.v1.", Namespace: e.ns}, &untyped))
	assert.Len(t, untyped, 3)
	require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: "secrets", Namespace: e.ns}, &untyped))
	assert.Empty(t, untyped)
	require.Error(t, e.client.List(e.ctx, kates.Query{Kind: "nosuchkind"}, &untyped))
}

func listByField(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("a"), e.configMap("b"), e.host("h", "in.example"), e.host("i", "out.example"))
	var cms []corev1.ConfigMap
	require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: "cm", Namespace: e.ns, FieldSelector: "metadata.name=b"}, &cms))
	require.Len(t, cms, 1)
	assert.Equal(t, "b", cms[0].Name)
	var hosts []*hostType
	require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: "hosts", Namespace: e.ns, FieldSelector: "spec.hostname=in.example"}, &hosts))
	assert.Equal(t, []string{"h"}, names(hosts))
}

func clusterScoped(t *testing.T, e *env) {
	tenant := map[string]any{"apiVersion": "example.kates.io/v1", "kind": "Tenant", "metadata": map[string]any{"name": e.ns}}
	require.NoError(t, e.client.Create(e.ctx, tenant, nil))
	got := &kates.Unstructured{}
	require.NoError(t, e.client.Get(e.ctx, tenant, got))
	assert.Empty(t, got.GetNamespace())
	require.NoError(t, e.client.Delete(e.ctx, got, nil))
	assert.True(t, kates.IsNotFound(e.client.Get(e.ctx, tenant, nil)))
}

func fieldManagers(t *testing.T, e *env) {
	for i, name := range []string{strings.Repeat("a", 128), "a b/c é"} {
		require.NoError(t, e.client.Create(e.ctx, e.configMap("cm"+strconv.Itoa(i)), nil, kates.FieldManager(name)))
	}
	for _, name := range []string{strings.Repeat("a", 129), strings.Repeat("é", 65), "a\nb"} {
		err := e.client.Create(e.ctx, e.configMap("refused"), nil, kates.FieldManager(name))
		require.ErrorContains(t, err, "a name has at most 128 bytes, all of printable characters")
		_, err = e.stored(e.configMap("refused"))
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	}
}
