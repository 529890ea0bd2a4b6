package fields

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// parsed is the content of a text in YAML.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	c := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(raw, &c))
	return c
}

// kindOf is a kind: a Deployment, or a custom one with a schema or without.
func kindOf(t *testing.T, name string) *kinds.Kind {
	t.Helper()
	switch name {
	case "Deployment":
		return kinds.BuiltIn(scheme.Scheme, []kinds.Served{{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: name}, Plural: "deployments"}})[0]
	case "Pod":
		return kinds.BuiltIn(scheme.Scheme, []kinds.Served{{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: name}, Plural: "pods"}})[0]
	case "Free":
		return kinds.Free(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}, "frees", true, nil)
	}
	all, err := kinds.Define(parsed(t, `{spec: {group: example.com, names: {plural: gadgets, kind: Gadget}, versions: [
    {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {size: {type: integer}, tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}, status: {type: object, properties: {count: {type: integer}}}}}}},
    {name: v2, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}, {name: v3, served: true}]}}`))
	require.NoError(t, err)
	return all[0]
}

// object is content of a kind, with a name.
func object(t *testing.T, k *kinds.Kind, text string) map[string]any {
	t.Helper()
	o := &unstructured.Unstructured{Object: parsed(t, text)}
	o.SetGroupVersionKind(k.GroupVersionKind)
	o.SetName("a")
	return o.Object
}

// managed are the managers of an object's fields: "manager operation subresource: fields".
func managed(t *testing.T, c map[string]any) []string {
	t.Helper()
	var all []string
	for _, m := range (&unstructured.Unstructured{Object: c}).GetManagedFields() {
		of := string(m.Operation)
		if m.Subresource != "" {
			of += " " + m.Subresource
		}
		all = append(all, m.Manager+" "+of+": "+strings.NewReplacer(`"`, "", `:{}`, "").Replace(m.FieldsV1.GetRawString()))
	}
	return all
}

func TestWhoChangesAFieldManagesIt(t *testing.T) {
	m := NewManagers(scheme.Scheme)
	for _, c := range []struct {
		kind, by, live, now string
		want                []string
	}{
		{"Gadget", "", "", "{spec: {size: 1}, status: {count: 1}}", []string{"m Update: {f:spec:{.,f:size}}"}},
		{"Gadget", "status", "{spec: {size: 1}}", "{spec: {size: 2}, status: {count: 1}, metadata: {labels: {a: b}}}", []string{"m Update status: {f:status:{.,f:count}}"}},
		{"Gadget", "", "{spec: {size: 1}}", "{spec: {size: 1}}", nil},
		{"Free", "", "", "{spec: {x: 1}, status: {count: 1}}", []string{"m Update: {f:spec:{.,f:x}}"}},
		{"Pod", "", "", "{spec: {nodeName: x}, status: {phase: Running}}", []string{"m Update: {f:spec:{f:nodeName}}"}},
		{"Deployment", "status", "{status: {}}", "{spec: {paused: true}, status: {replicas: 1}, metadata: {labels: {a: b}}}", []string{"m Update status: {f:status:{f:replicas}}"}},
		{"Pod", "status", "{status: {}}", "{spec: {nodeName: x}, status: {phase: Running}, metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: o, uid: u}], labels: {a: b}}}",
			[]string{"m Update status: {f:metadata:{f:labels:{.,f:a}},f:status:{f:phase}}"}},
	} {
		k := kindOf(t, c.kind)
		var live map[string]any
		if c.live != "" {
			live = object(t, k, c.live)
		}
		got, err := m.Update(k, c.by, live, object(t, k, c.now), "m")
		require.NoError(t, err, c)
		assert.Equal(t, c.want, managed(t, got), c)
	}
	k := kindOf(t, "Gadget")
	bad := object(t, k, "{metadata: {managedFields: [{manager: x, operation: Update, apiVersion: example.com/v1, fieldsType: FieldsV1, fieldsV1: {'f:spec': {}}}]}, spec: {size: text}}")
	got, err := m.Update(k, "", object(t, k, "{}"), bad, "m")
	require.NoError(t, err)
	assert.Empty(t, managed(t, got), "what does not fit the schema has none")
}

func TestWhatIsAppliedIsMergedByItsSchemaAndConflicts(t *testing.T) {
	m := NewManagers(scheme.Scheme)
	k := kindOf(t, "Gadget")
	one, err := m.Apply(k, "", nil, object(t, k, "{spec: {size: 1, tags: [x]}}"), "one", false)
	require.NoError(t, err)
	two, err := m.Apply(k, "", one, object(t, k, "{spec: {tags: [z]}}"), "two", false)
	require.NoError(t, err)
	tags, _, _ := unstructured.NestedStringSlice(two, "spec", "tags")
	assert.Equal(t, []string{"x", "z"}, tags, "a set has the elements of both")
	_, err = m.Apply(k, "", two, object(t, k, "{spec: {size: 2, tags: [z]}}"), "two", false)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	assert.ErrorContains(t, err, `conflict with "one": .spec.size`)
	forced, err := m.Apply(k, "", two, object(t, k, "{spec: {size: 2, tags: [z]}}"), "two", true)
	require.NoError(t, err)
	assert.Equal(t, []string{"one Apply: {f:spec:{f:tags:{v:\\x\\}}}", "two Apply: {f:spec:{f:size,f:tags:{v:\\z\\}}}"}, managed(t, forced))
	gone, err := m.Apply(k, "", forced, object(t, k, "{}"), "two", false)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"tags": []any{"x"}}, gone["spec"], "what is no longer applied goes")
	kept, err := m.Apply(k, "", gone, object(t, k, "{metadata: {finalizers: [a/x]}}"), "three", false)
	require.NoError(t, err)
	kept, err = m.Apply(k, "", kept, object(t, k, "{metadata: {finalizers: [a/z]}}"), "four", false)
	require.NoError(t, err)
	assert.Equal(t, []string{"a/x", "a/z"}, (&unstructured.Unstructured{Object: kept}).GetFinalizers(), "so do finalizers")
	_, err = m.Apply(k, "", nil, object(t, k, "{spec: {size: text}}"), "one", false)
	require.Error(t, err)
}

func TestAManagerOfAnotherVersionIsAskedInItsVersion(t *testing.T) {
	m := NewManagers(scheme.Scheme)
	k := kindOf(t, "Gadget")
	live := object(t, k, "{spec: {size: 1}, metadata: {managedFields: [{manager: old, operation: Apply, apiVersion: example.com/v2, fieldsType: FieldsV1, fieldsV1: {'f:spec': {'f:size': {}}}}]}}")
	_, err := m.Apply(k, "", live, object(t, k, "{spec: {size: 2}}"), "new", false)
	require.ErrorContains(t, err, `conflict with "old": .spec.size`)
	same, err := m.Apply(k, "", live, object(t, k, "{spec: {size: 1}}"), "new", false)
	require.NoError(t, err)
	assert.Equal(t, []string{"new Apply: {f:spec:{f:size}}", "old Apply: {f:spec:{f:size}}"}, managed(t, same))
}

func TestPatchesAnswerAsTheAPIServerDoes(t *testing.T) {
	const old = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: a}], nodeName: x}}"
	code := func(err error) int32 {
		if err == nil {
			return 0
		}
		var status apierrors.APIStatus
		require.ErrorAs(t, err, &status)
		return status.Status().Code
	}
	many := "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"Pod"},`, mostOperations) + `{"op":"remove","path":"/kind"}]`
	k := kindOf(t, "Pod")
	for _, c := range []struct {
		how        types.PatchType
		patch      string
		code       int32
		path, want string
	}{
		{types.MergePatchType, `{"spec":{"nodeName":null,"containers":[{"name":"d"}]}}`, 0, "spec", "{containers: [{name: d}]}"},
		{types.StrategicMergePatchType, `{"spec":{"nodeName":"z","containers":[{"name":"c","image":"b"}]}}`, 0, "spec", "{containers: [{name: c, image: b}], nodeName: z}"},
		{types.JSONPatchType, `[{"op":"replace","path":"/spec/nodeName","value":"z"}]`, 0, "spec", "{containers: [{name: c, image: a}], nodeName: z}"},
		{types.JSONPatchType, `[{"op":"test","path":"/spec/nodeName","value":"z"}]`, 422, "", ""},
		{types.JSONPatchType, `{`, 400, "", ""}, {types.JSONPatchType, many, 413, "", ""},
		{types.MergePatchType, `[`, 400, "", ""}, {types.StrategicMergePatchType, `[`, 400, "", ""},
		{types.StrategicMergePatchType, `{"spec":{"containers":[{"image":"b"}]}}`, 422, "", ""},
	} {
		content := parsed(t, old)
		got, err := Patch(scheme.Scheme, k, c.how, content, []byte(c.patch))
		assert.Equal(t, parsed(t, old), content, "it is not changed")
		require.Equal(t, c.code, code(err), "%s %.80s: %v", c.how, c.patch, err)
		if err == nil {
			assert.Equal(t, parsed(t, c.want), got[c.path])
		}
	}
	_, err := Patch(scheme.Scheme, kindOf(t, "Free"), types.StrategicMergePatchType, parsed(t, old), []byte("{}"))
	require.Error(t, err, "a kind without a Go type")
}
