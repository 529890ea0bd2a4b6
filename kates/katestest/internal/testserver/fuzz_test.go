package testserver

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// fuzzed is a server of many kinds.
func fuzzed(f testing.TB) *Server {
	all := []kinds.Served{
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Plural: "pods"},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Service"), Plural: "services"},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Plural: "secrets"},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Event"), Plural: "events"},
		{GroupVersionKind: eventsv1.SchemeGroupVersion.WithKind("Event"), Plural: "events"},
		{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Plural: "deployments"},
		{GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), Plural: "jobs"},
		{GroupVersionKind: autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), Plural: "horizontalpodautoscalers"},
		{GroupVersionKind: autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), Plural: "horizontalpodautoscalers"},
	}
	thing := schema.GroupVersionKind{Group: "things.io", Version: "v1", Kind: "Thing"}
	builtIn := append(kinds.BuiltIn(scheme.Scheme, append(all, served...)), kinds.Free(thing, "things", true, nil))
	s, err := New(scheme.Scheme, builtIn)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	return s
}

// fuzzedPaths are those of the kinds that the server has.
var fuzzedPaths = []string{
	"/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/services",
	"/apis/apps/v1/namespaces/default/deployments", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	"/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "/api/v1/namespaces/default/secrets",
	"/apis/events.k8s.io/v1/namespaces/default/events", "/apis/batch/v1/namespaces/default/jobs", "/api/v1/namespaces",
	"/apis/things.io/v1/namespaces/default/things",
}

// FuzzRequests sends any body to a server. Whatever it is, the answer is a Status or an object,
// and an object that was taken can be read, listed, patched and deleted.
func FuzzRequests(f *testing.F) {
	methods := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	parts := []string{"", "/a", "/a/status", "/a/scale", "/a/binding", "/a/eviction", "/a/finalize"}
	types := []string{
		"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/merge-patch+json",
		"application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml",
	}
	for i, body := range []string{
		`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","labels":5}}`, `{"metadata":5,"spec":[],"status":"x"}`,
		`{"spec":{"containers":[null,{"ports":[{}],"env":[1]}],"tolerations":[3]}}`, `[{"op":"add","path":"/spec/x","value":{}}]`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.io"},"spec":{"group":"io","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":[]}}}],"names":{}}}`,
		`{"apiVersion":"things.io/v1","kind":"Thing","metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:x":1}}]},"spec":{"n":1e400}}`,
		"k8s\x00\x0a\x04\x0a\x02v1", `null`, ``, `{"metadata":{"name":"a","ownerReferences":[{}],"finalizers":[""]},"data":{"k":null}}`,
	} {
		for k := range fuzzedPaths {
			f.Add(uint8(i), uint8(k), uint8(i), uint8(k), []byte(body))
		}
	}
	s := fuzzed(f)
	f.Fuzz(func(t *testing.T, method, kind, part, media uint8, body []byte) {
		ask := func(method, path, contentType string, body []byte) int {
			r := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(body))
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Code
		}
		at := fuzzedPaths[int(kind)%len(fuzzedPaths)]
		contentType := types[int(media)%len(types)]
		ask(http.MethodPost, at, "application/json", []byte(`{"metadata":{"name":"a"}}`))
		query := "?fieldManager=m&force=true"
		if contentType != "application/apply-patch+yaml" {
			query = "?fieldManager=m"
		}
		ask(methods[int(method)%len(methods)], at+parts[int(part)%len(parts)]+query, contentType, body)
		for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodDelete} {
			ask(method, at+"/a", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"l":"x"}}}`))
		}
		if code := ask(http.MethodGet, at, "application/json", nil); code >= http.StatusInternalServerError {
			t.Errorf("the list is answered %d", code)
		}
	})
}
