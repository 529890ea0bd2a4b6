package testserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"
)

// names are fields that the server itself looks at.
var names = []string{
	"metadata", "name", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "managedFields", "uid", "kind", "apiVersion",
	"resourceVersion", "generation", "generateName", "deletionTimestamp", "spec", "status", "template", "containers", "image", "ports", "port", "protocol",
	"selector", "matchLabels", "replicas", "tolerations", "key", "env", "valueFrom", "fieldRef", "volumes", "resources", "limits", "requests", "cpu",
	"strategy", "type", "data", "stringData", "immutable", "metrics", "resource", "target", "behavior", "podIP", "podIPs", "ip", "group", "names", "versions",
	"schema", "openAPIV3Schema", "properties", "items", "additionalProperties", "default", "x-kubernetes-list-type", "served", "storage", "subresources",
	"scale", "specReplicasPath", "plural", "conversion", "preconditions", "fieldsV1", "f:metadata", "operation", "manager", "time", "activeDeadlineSeconds",
}

// anyJSON draws JSON of any form, with such names.
func anyJSON(t *rapid.T, depth int) any {
	most := 8
	if depth == 0 {
		most = 5
	}
	switch rapid.IntRange(0, most).Draw(t, "form") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.SampledFrom([]any{0, 1, -1, 1 << 40, 1.5}).Draw(t, "number")
	case 3, 4, 5:
		return rapid.SampledFrom([]string{"", "a", "v1", "x/y", "Pod", "metadata", "RollingUpdate", "Cluster", "object", "map", "2020-01-01T00:00:00Z", "50%", ".spec.x"}).Draw(t, "text")
	case 6:
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			list = append(list, anyJSON(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "size") {
		object[rapid.SampledFrom(names).Draw(t, "name")] = anyJSON(t, depth-1)
	}
	return object
}

// TestAnyJSONIsAnswered sends JSON in which any field may have any form. The server answers. What
// it took can be read, patched and deleted.
func TestAnyJSONIsAnswered(t *testing.T) {
	s := fuzzed(t)
	methods := []string{http.MethodPost, http.MethodPut, http.MethodPatch}
	rapid.Check(t, func(t *rapid.T) {
		ask := func(method, path, contentType string, body any) int {
			raw, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(method, path+"?fieldManager=m", bytes.NewReader(raw))
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Code
		}
		at := rapid.SampledFrom(fuzzedPaths).Draw(t, "kind")
		part := rapid.SampledFrom([]string{"", "", "", "/status", "/scale", "/binding"}).Draw(t, "part")
		body := map[string]any{"metadata": map[string]any{"name": "a"}}
		for _, name := range []string{"spec", "status", "metadata", "data"} {
			if rapid.Bool().Draw(t, name) {
				body[name] = anyJSON(t, 6)
			}
		}
		ask(http.MethodPost, at, "application/json", map[string]any{"metadata": map[string]any{"name": "a"}})
		switch method := rapid.SampledFrom(methods).Draw(t, "method"); method {
		case http.MethodPost:
			ask(method, at, "application/json", body)
		case http.MethodPut:
			ask(method, at+"/a"+part, "application/json", body)
		default:
			ask(method, at+"/a"+part, rapid.SampledFrom([]string{
				"application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml",
			}).Draw(t, "patch"), body)
		}
		if code := ask(http.MethodGet, at, "application/json", nil); code != http.StatusOK {
			t.Fatalf("the list is answered %d", code)
		}
		ask(http.MethodPatch, at+"/a", "application/merge-patch+json", map[string]any{"metadata": map[string]any{"finalizers": nil, "labels": map[string]any{"l": "x"}}})
		ask(http.MethodDelete, at+"/a", "application/json", nil)
	})
}
