package testserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// served are the built-in kinds of the tests.
var served = []kinds.Served{
	{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Plural: "configmaps"},
	{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Plural: "namespaces", ClusterScoped: true},
	{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Plural: "clusterroles", ClusterScoped: true},
	{GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, Plural: "customresourcedefinitions", ClusterScoped: true},
}

const (
	configMaps   = "/api/v1/namespaces/default/configmaps"
	clusterRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	definedKinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// tested is a server in a bubble. What a controller does is done after settle.
type tested struct {
	*testing.T
	*Server
}

// inBubble runs a test on a server without controllers.
func inBubble(t *testing.T, test func(s tested)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(scheme.Scheme, kinds.BuiltIn(scheme.Scheme, served))
		require.NoError(t, err)
		defer s.Close()
		test(tested{t, s})
	})
}

// settle returns when nobody has anything to do any more.
func (s tested) settle() { synctest.Wait() }

// ask sends a request, with a body in YAML, and returns the answer.
func (s tested) ask(method, path, body string) (int, *unstructured.Unstructured) {
	s.Helper()
	raw, err := yaml.YAMLToJSON([]byte(body))
	require.NoError(s, err)
	if body == "" {
		raw = nil
	}
	r := httptest.NewRequest(method, path, strings.NewReader(string(raw)))
	if r.Header.Set("Content-Type", "application/json"); method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(w.Body.Bytes(), &o.Object); err != nil {
		o.Object = map[string]any{"text": w.Body.String()}
	}
	return w.Code, o
}

// do sends a request that succeeds.
func (s tested) do(method, path, body string) *unstructured.Unstructured {
	s.Helper()
	code, o := s.ask(method, path, body)
	require.Less(s, code, 300, "%s %s: %v", method, path, o.Object)
	return o
}

// made makes an object of a path's kind, and returns its UID.
func (s tested) made(path, name, more string) string {
	s.Helper()
	kind := map[string]string{configMaps: "ConfigMap", clusterRoles: "ClusterRole", "/api/v1/namespaces": "Namespace"}[path]
	version := "v1"
	if path == clusterRoles {
		version = "rbac.authorization.k8s.io/v1"
	}
	return string(s.do(http.MethodPost, path, "{apiVersion: "+version+", kind: "+kind+", metadata: {name: "+name+more+"}}").GetUID())
}

// there reports whether a path has an object.
func (s tested) there(path string) bool {
	s.Helper()
	code, o := s.ask(http.MethodGet, path, "")
	require.Contains(s, []int{http.StatusOK, http.StatusNotFound}, code, o.Object)
	return code == http.StatusOK
}

// owned is metadata with a config map as the owner.
func owned(name, uid, more string) string {
	return ", ownerReferences: [" + reference(name, uid, more) + "]"
}

func reference(name, uid, more string) string {
	return "{apiVersion: v1, kind: ConfigMap, name: " + name + ", uid: " + uid + more + "}"
}
