package asjson

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// TestAMisfitNamesThePlaceAndTheForms: where the decoder fails, and only there.
func TestAMisfitNamesThePlaceAndTheForms(t *testing.T) {
	type own struct {
		corev1.ResourceRequirements
		Untagged float32
		Hidden   int `json:"-"`
		Set      map[string][]bool
		Raw      json.RawMessage `json:"raw"`
		Any      any             `json:"any"`
		Pointer  **int8          `json:"pointer"`
	}
	for _, row := range []struct {
		into       any
		yaml, want string
	}{
		{corev1.ConfigMap{}, `{data: {x: y}}`, `data["x"] is a boolean, want a string`},
		{corev1.ConfigMap{}, `{data: {b: 1, a: off}}`, `data["a"] is a boolean, want a string`},
		{corev1.ConfigMap{}, `{data: {x: 1.5}}`, `data["x"] is a number, want a string`},
		{corev1.ConfigMap{}, `{data: {x: 0x10}}`, `data["x"] is a number, want a string`},
		{corev1.ConfigMap{}, `{data: {x: {a: b}}}`, `data["x"] is an object, want a string`},
		{corev1.ConfigMap{}, `{data: {x: [a]}}`, `data["x"] is a list, want a string`},
		{corev1.ConfigMap{}, `{data: [x]}`, `data is a list, want an object`},
		{corev1.ConfigMap{}, `{data: {x: 2001-01-01, y: ~, z: "y"}}`, ``},
		{corev1.ConfigMap{}, `{metadata: {labels: {a.b/c: 1}}}`, `metadata.labels["a.b/c"] is a number, want a string`},
		{corev1.ConfigMap{}, `{metadata: {creationTimestamp: 5}}`, `metadata.creationTimestamp is a number, want v1.Time`},
		{corev1.ConfigMap{}, `{immutable: "true"}`, `immutable is a string, want a boolean`},
		{corev1.Secret{}, `{data: {password: hunter2}}`, `data["password"] is a string, want base64`},
		{corev1.Secret{}, `{data: {password: 1234}}`, `data["password"] is a number, want base64`},
		{corev1.Secret{}, `{data: {password: aHVudGVyMg==}}`, ``},
		{corev1.Service{}, `{spec: {ports: [{port: 80}, {port: "81"}]}}`, `spec.ports[1].port is a string, want an integer of int32`},
		{corev1.Service{}, `{spec: {ports: [{port: 4294967376}]}}`, `spec.ports[0].port is a number, want an integer of int32`},
		{corev1.Service{}, `{spec: {ports: [{port: 80.5}]}}`, `spec.ports[0].port is a number, want an integer of int32`},
		{corev1.Service{}, `{spec: {ports: [{targetPort: true}]}}`, `spec.ports[0].targetPort is a boolean, want intstr.IntOrString`},
		{corev1.Service{}, `{spec: {ports: {port: 80}}}`, `spec.ports is an object, want a list`},
		{corev1.Service{}, `{spec: none, unknown: {a: 1}}`, `spec is a string, want an object`},
		{appsv1.Deployment{}, `{spec: {replicas: two, template: {spec: {containers: [{env: [{name: a, value: 8080}]}]}}}}`, `spec.replicas is a string, want an integer of int32`},
		{appsv1.Deployment{}, `{spec: {template: {spec: {containers: [{env: [{name: a, value: 8080}]}]}}}}`, `spec.template.spec.containers[0].env[0].value is a number, want a string`},
		{appsv1.Deployment{}, `{spec: {template: {spec: {containers: [{resources: {limits: {cpu: 1, memory: lots}}}]}}}}`, `spec.template.spec.containers[0].resources.limits["memory"] is a string, want resource.Quantity`},
		{own{}, `{limits: {cpu: true}}`, `limits["cpu"] is a boolean, want resource.Quantity`},
		{own{}, `{Untagged: x}`, `Untagged is a string, want a number`},
		{own{}, `{Set: {a: [true, 3]}}`, `Set["a"][1] is a number, want a boolean`},
		{own{}, `{pointer: 300}`, `pointer is a number, want an integer of int8`},
		{own{}, `{pointer: 3, raw: {a: [1]}, any: [{}], Hidden: x, "-": y}`, ``},
		{own{}, `[a]`, `it is a list, want an object`},
	} {
		t.Run(row.yaml, func(t *testing.T) {
			text, err := yaml.YAMLToJSON([]byte(row.yaml))
			require.NoError(t, err)
			var content any
			require.NoError(t, utiljson.Unmarshal(text, &content))
			into := reflect.TypeOf(row.into)
			failed := json.Unmarshal(text, reflect.New(into).Interface())
			assert.Equal(t, row.want != "", failed != nil, "%v", failed)
			if misfit := MisfitOf(content, into); row.want == "" {
				assert.Nil(t, misfit)
			} else if assert.NotNil(t, misfit) {
				assert.EqualError(t, misfit, row.want)
			}
		})
	}
}
