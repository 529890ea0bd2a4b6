package testserver

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/internal/client/kinds"
)

func TestOpenAPIHasTheSchemasAndTheSelectableFieldsOfDefinedKinds(t *testing.T) {
	inBubble(t, func(s tested) {
		url := func(path string) string {
			paths := s.do(http.MethodGet, "/openapi/v3", "").Object["paths"].(map[string]any)
			at, _ := paths[path].(map[string]any)["serverRelativeURL"].(string)
			return at
		}
		assert.Empty(t, s.do(http.MethodGet, "/openapi/v3", "").Object["paths"])
		version := "{name: v1, served: true, storage: true, selectableFields: [{jsonPath: .spec.color}], schema: {openAPIV3Schema: " +
			"{type: object, properties: {spec: {type: object, properties: {color: {type: string}, all: {type: array, items: {type: string}}}}}}}}"
		s.define("things", "Thing", version)
		s.define("others", "Other", "{name: v1, served: true, storage: true, "+anything+"}")

		first := url("apis/example.com/v1")
		require.Regexp(t, `^/openapi/v3/apis/example\.com/v1\?hash=[0-9A-F]+$`, first)
		document := s.do(http.MethodGet, first, "")
		thing, _, _ := unstructured.NestedMap(document.Object, "components", "schemas", "com.example.v1.Thing")
		assert.Equal(t, []any{map[string]any{"fieldPath": "spec.color"}}, thing["x-kubernetes-selectable-fields"])
		assert.Equal(t, []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Thing"}}, thing["x-kubernetes-group-version-kind"])
		other, _, _ := unstructured.NestedMap(document.Object, "components", "schemas", "com.example.v1.Other")
		assert.NotContains(t, other, "x-kubernetes-selectable-fields")
		raw, err := json.Marshal(document.Object)
		require.NoError(t, err)
		read, err := kinds.ReadSchemas(schema.GroupVersion{Group: "example.com", Version: "v1"}, raw)
		require.NoError(t, err)
		assert.True(t, read.Whole("Thing", fieldpath.MakePathOrDie("spec", "all"), []any{}))
		assert.False(t, read.Whole("Thing", fieldpath.MakePathOrDie("metadata", "finalizers"), []any{}), "a set")

		s.do(http.MethodPatch, definedKinds+"/things.example.com", "{metadata: {labels: {a: b}}}")
		assert.Equal(t, first, url("apis/example.com/v1"), "the hash is that of the schemas")
		s.do(http.MethodPatch, definedKinds+"/others.example.com", "{spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}")
		assert.NotEqual(t, first, url("apis/example.com/v1"))
		code, _ := s.ask(http.MethodGet, first, "")
		assert.Equal(t, http.StatusMovedPermanently, code)
		code, _ = s.ask(http.MethodGet, "/openapi/v3/apis/example.com/v2", "")
		assert.Equal(t, http.StatusNotFound, code)
	})
}
