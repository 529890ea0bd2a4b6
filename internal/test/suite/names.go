package suite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/kates"
)

var nameScenarios = []scenario{
	{"KindsAreTakenAsKubectlTakesThem", kindSpellings},
	{"AVersionThatWasAskedForIsTheVersionUsed", askedVersion},
	{"AMissingNamespaceIsTheDefaultNamespace", defaultNamespace},
	{"UnknownKindsAreErrorsThatNameThem", unknownKinds},
	{"TypedErrorsWorkThroughTheWrapping", typedErrors},
}

func kindSpellings(t *testing.T, e *env) {
	e.foreignCreate(e.service("web"), e.host("web", "a.example"))
	for _, kind := range []string{"svc", "SVC", "Service", "service", "services", "SERVICES", "Svc",
		"host", "Host", "hosts", "HOSTS", "hosts.getambassador.io", "Host.v3alpha1.getambassador.io", "hosts.v3alpha1.getambassador.io"} {
		var got kates.Unstructured
		ref := map[string]any{"kind": kind, "metadata": map[string]any{"name": "web", "namespace": e.ns}}
		require.NoError(t, e.client.Get(e.ctx, ref, &got), kind)
		assert.Contains(t, []string{"Service", "Host"}, got.GetKind(), kind)

		var listed []*kates.Unstructured
		require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: kind, Namespace: e.ns}, &listed), kind)
		require.Len(t, listed, 1, kind)
		assert.Equal(t, got.GetKind(), listed[0].GetKind(), kind)
	}
	for _, kind := range []string{"cm", "ConfigMap"} {
		object := map[string]any{"kind": kind, "metadata": map[string]any{"name": "made-from-" + fmt.Sprint(len(kind)), "namespace": e.ns}}
		var created kates.Unstructured
		require.NoError(t, e.client.Create(e.ctx, object, &created), kind)
		assert.Equal(t, "v1 ConfigMap", created.GetAPIVersion()+" "+created.GetKind(), "what is sent has its real kind")
	}
}

func askedVersion(t *testing.T, e *env) {
	hpa := map[string]any{
		"apiVersion": "autoscaling/v1",
		"kind":       "HorizontalPodAutoscaler",
		"metadata":   map[string]any{"name": "h", "namespace": e.ns},
		"spec":       map[string]any{"maxReplicas": int64(3), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
	}
	var got kates.Unstructured
	require.NoError(t, e.client.Create(e.ctx, hpa, &got))
	assert.Equal(t, "autoscaling/v1", got.GetAPIVersion())
	var listed []*kates.Unstructured
	require.NoError(t, e.client.List(e.ctx, kates.Query{Kind: "hpa.v1.autoscaling", Namespace: e.ns}, &listed))
	require.Len(t, listed, 1)
	assert.Equal(t, "autoscaling/v1", listed[0].GetAPIVersion())
	hpa["apiVersion"] = "autoscaling/v77"
	require.Error(t, e.client.Get(e.ctx, hpa, nil))
}

func defaultNamespace(t *testing.T, e *env) {
	cm := &corev1.ConfigMap{}
	cm.Name = "default-of-" + e.ns
	var got corev1.ConfigMap
	require.NoError(t, e.client.Create(e.ctx, cm, &got))
	assert.Equal(t, "default", got.Namespace)
	require.NoError(t, e.client.Get(e.ctx, cm, nil))
	require.NoError(t, e.client.Delete(e.ctx, cm, nil))
	assert.True(t, kates.IsNotFound(e.client.Get(e.ctx, &got, nil)))
}

func unknownKinds(t *testing.T, e *env) {
	ref := map[string]any{"kind": "nosuchkind", "metadata": map[string]any{"name": "x", "namespace": e.ns}}
	require.ErrorContains(t, e.client.Get(e.ctx, ref, nil), "nosuchkind")
	require.ErrorContains(t, e.client.Create(e.ctx, ref, nil), "nosuchkind")
	require.Error(t, e.client.Get(e.ctx, map[string]any{"metadata": map[string]any{"name": "x"}}, nil), "no kind at all")
	require.Error(t, e.client.Get(e.ctx, map[string]any{"kind": "cm"}, nil), "no name")
}

func typedErrors(t *testing.T, e *env) {
	missing := e.client.Get(e.ctx, e.configMap("missing"), nil)
	for _, err := range []error{missing, fmt.Errorf("reconciling: %w", missing)} {
		assert.True(t, kates.IsNotFound(err), "%v", err)
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
		var status *apierrors.StatusError
		require.True(t, errors.As(err, &status), "%v", err)
		assert.Equal(t, "missing", status.ErrStatus.Details.Name)
	}
	assert.True(t, kates.IsNotFound(e.client.Delete(e.ctx, e.configMap("missing"), nil)))
	assert.True(t, kates.IsNotFound(e.client.Update(e.ctx, e.configMap("missing"), nil)))
	assert.False(t, kates.IsNotFound(nil))

	require.NoError(t, e.client.Create(e.ctx, e.configMap("cm"), nil))
	assert.True(t, apierrors.IsAlreadyExists(e.client.Create(e.ctx, e.configMap("cm"), nil)))
}
