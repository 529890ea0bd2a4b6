package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

var targetScenarios = []scenario{
	{"ATargetMayBeNilAPointerOrAPointerToAPointer", targetForms},
	{"ATargetIsZeroedBeforeItIsFilled", targetIsZeroed},
	{"ATargetIsUntouchedOnError", targetUntouchedOnError},
	{"ATargetThatIsNoPointerIsAnErrorAndNothingIsWritten", badTarget},
	{"G10TheResourceGivenIsNeverModified", resourceUnmodified},
	{"TheResourceMayBeItsOwnTarget", resourceAsTarget},
}

func targetForms(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm", "a", "1"))
	ref := e.configMap("cm")
	require.NoError(t, e.client.Get(e.ctx, ref, nil), "nil")
	require.Error(t, e.client.Get(e.ctx, ref, (*corev1.ConfigMap)(nil)), "nowhere to put the object, which is hardly meant")

	var value corev1.ConfigMap
	require.NoError(t, e.client.Get(e.ctx, ref, &value))
	assert.Equal(t, "1", value.Data["a"])

	held := &corev1.ConfigMap{}
	pointer := held
	require.NoError(t, e.client.Get(e.ctx, ref, &pointer))
	assert.Equal(t, "1", pointer.Data["a"])
	assert.NotSame(t, held, pointer, "a pointer to a pointer gets a fresh object")
	assert.Empty(t, held.Data)

	var untyped map[string]any
	require.NoError(t, e.client.Get(e.ctx, ref, &untyped))
	assert.Equal(t, map[string]any{"a": "1"}, untyped["data"])

	var own struct{ Data map[string]string }
	require.NoError(t, e.client.Get(e.ctx, ref, &own))
	assert.Equal(t, map[string]string{"a": "1"}, own.Data)
}

func targetIsZeroed(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm", "a", "1"))
	target := e.configMap("other", "stale", "1")
	target.Labels = map[string]string{"stale": "1"}
	require.NoError(t, e.client.Get(e.ctx, e.configMap("cm"), target))
	assert.Equal(t, map[string]string{"a": "1"}, target.Data)
	assert.Empty(t, target.Labels)

	untyped := map[string]any{"stale": "1"}
	require.NoError(t, e.client.Get(e.ctx, e.configMap("cm"), &untyped))
	assert.NotContains(t, untyped, "stale")
}

func targetUntouchedOnError(t *testing.T, e *env) {
	target := e.configMap("mine", "a", "1")
	require.Error(t, e.client.Get(e.ctx, e.configMap("missing"), target))
	require.Error(t, e.client.Update(e.ctx, e.configMap("missing"), target))
	require.Error(t, e.client.Patch(e.ctx, e.configMap("missing"), kates.MergePatchType, []byte(`{}`), target))
	require.Error(t, e.client.Delete(e.ctx, e.configMap("missing"), target))
	assert.Equal(t, e.configMap("mine", "a", "1"), target)
	targets := []*corev1.ConfigMap{target}
	require.Error(t, e.client.List(e.ctx, kates.Query{Kind: "cm", LabelSelector: "==="}, &targets))
	assert.Equal(t, []*corev1.ConfigMap{target}, targets)
}

func badTarget(t *testing.T, e *env) {
	require.Error(t, e.client.Create(e.ctx, e.configMap("cm"), corev1.ConfigMap{}))
	_, err := e.stored(e.configMap("cm"))
	assert.True(t, kates.IsNotFound(err), "%v", err)
	require.Error(t, e.client.Create(e.ctx, nil, nil))
	require.Error(t, e.client.Create(e.ctx, "a string", nil))
}

// resourceUnmodified gives typed and untyped resources to every method, and compares them with
// copies.
func resourceUnmodified(t *testing.T, e *env) {
	patch := []byte(`{"metadata":{"labels":{"p":"1"}}}`)
	methods := map[string]func(resource any) error{
		"create":       func(r any) error { return e.client.Create(e.ctx, r, nil) },
		"get":          func(r any) error { return e.client.Get(e.ctx, r, nil) },
		"upsert":       func(r any) error { return e.client.Upsert(e.ctx, r, r, nil) },
		"update":       func(r any) error { return e.client.Update(e.ctx, r, nil) },
		"updateStatus": func(r any) error { return e.client.UpdateStatus(e.ctx, r, nil) },
		"patch":        func(r any) error { return e.client.Patch(e.ctx, r, kates.MergePatchType, patch, nil) },
		"delete":       func(r any) error { return e.client.Delete(e.ctx, r, nil) },
	}
	resources := map[string]func() any{
		"typed":   func() any { return e.quota("typed", "1") },
		"untyped": func() any { return asUnstructured(t, e.quota("untyped", "1")).Object },
		"bare": func() any { // has neither apiVersion nor namespace, and a short name as its kind
			return map[string]any{"kind": "quota", "metadata": map[string]any{"name": "bare-" + e.ns}}
		},
		"unstructured": func() any { return asUnstructured(t, e.quota("unstructured", "1")) },
	}
	for kind, resource := range resources {
		for _, method := range []string{"create", "get", "upsert", "update", "updateStatus", "patch", "delete"} {
			given := resource()
			require.NoError(t, methods[method](given), "%s %s", method, kind)
			assert.Equal(t, resource(), given, "%s %s", method, kind)
		}
	}
}

func resourceAsTarget(t *testing.T, e *env) {
	cm := e.configMap("cm", "a", "1")
	require.NoError(t, e.client.Create(e.ctx, cm, cm))
	cm.Data["a"] = "2"
	require.NoError(t, e.client.Update(e.ctx, cm, cm))
	require.NoError(t, e.client.Patch(e.ctx, cm, kates.MergePatchType, []byte(`{"data":{"b":"1"}}`), cm))
	assert.Equal(t, map[string]string{"a": "2", "b": "1"}, cm.Data)
	require.NoError(t, e.client.Delete(e.ctx, cm, cm))
}
