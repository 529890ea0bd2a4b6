package kindstest

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The paths of OpenAPI, and of the custom kind that [Server.Declare] declares.
const (
	OpenAPIIndex  = "/openapi/v3"
	HostsDocument = "/openapi/v3/apis/getambassador.io/v3alpha1"
	HostsList     = "/apis/getambassador.io/v3alpha1/hosts"
)

// HostKind is that kind.
var HostKind = schema.GroupVersionKind{Group: "getambassador.io", Version: "v3alpha1", Kind: "Host"}

// Respond answers a path with JSON, or with a status code.
func (s *Server) Respond(path string, code int, body string) {
	s.Change(func() {
		s.Others[path] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	})
}

// Declare serves OpenAPI in which Hosts have these selectable fields.
func (s *Server) Declare(paths ...string) {
	s.Respond(OpenAPIIndex, http.StatusOK, `{"paths":{
		"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=1"},
		"apis/getambassador.io/v3alpha1":{"serverRelativeURL":"`+HostsDocument+`?hash=2"}}}`)
	declared := func(paths ...string) (all []map[string]string) {
		for _, path := range paths {
			all = append(all, map[string]string{"fieldPath": path})
		}
		return all
	}
	of := func(kind string, groups ...string) (all []metav1.GroupVersionKind) {
		for _, group := range groups {
			all = append(all, metav1.GroupVersionKind{Group: group, Version: "v3alpha1", Kind: kind})
		}
		return all
	}
	raw, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": map[string]any{
		"a": map[string]any{"x-kubernetes-group-version-kind": of("Host", "getambassador.io"), "x-kubernetes-selectable-fields": declared(paths...)},
		"b": map[string]any{"x-kubernetes-group-version-kind": of("HostList", "getambassador.io"), "x-kubernetes-selectable-fields": declared(paths...)},
		"c": map[string]any{"x-kubernetes-group-version-kind": of("Host", "example.io", "example.com"), "x-kubernetes-selectable-fields": declared("spec.foreign")},
		"d": map[string]any{"type": "object"},
	}}})
	if err != nil {
		panic(err)
	}
	s.Respond(HostsDocument, http.StatusOK, string(raw))
}

// Hold makes the server's next answers to /apis wait until release is closed, and sends on arrived
// for each.
func (s *Server) Hold() (arrived chan struct{}, release chan struct{}) {
	arrived, release = make(chan struct{}, 100), make(chan struct{})
	s.Change(func() {
		s.Hook = func(request *http.Request) {
			if request.URL.Path == "/apis" {
				arrived <- struct{}{}
				select {
				case <-release:
				case <-request.Context().Done():
				}
			}
		}
	})
	return arrived, release
}
