package jsonform

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
)

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "prod", Labels: map[string]string{"app": name}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
}

type route struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Weight            int64   `json:"weight"`
	Share             float64 `json:"share"`
}

func TestToUnstructuredTakesWhateverEncodesToAnObject(t *testing.T) {
	svc := service("web")
	pointer := &svc
	content := map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "web", "namespace": "prod", "labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"ports": []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(0)}}},
		"status":   map[string]any{"loadBalancer": map[string]any{}},
	}
	raw, err := json.Marshal(content)
	require.NoError(t, err)
	var object Object = svc
	for name, resource := range map[string]any{
		"pointer":              svc,
		"value":                *svc,
		"pointer to pointer":   pointer,
		"pointer to that":      &pointer,
		"pointer to interface": &object,
		"unstructured":         &unstructured.Unstructured{Object: content},
		"unstructured value":   unstructured.Unstructured{Object: content},
		"map":                  content,
		"pointer to map":       &content,
		"raw JSON":             json.RawMessage(raw),
	} {
		t.Run(name, func(t *testing.T) {
			u, err := ToUnstructured(clientscheme.Scheme, resource)
			require.NoError(t, err)
			assert.Equal(t, content, u.Object)
		})
	}
}

func TestToUnstructuredReadsTheCallersOwnStructs(t *testing.T) {
	u, err := ToUnstructured(clientscheme.Scheme, route{
		TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Route"}, ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Weight: 1<<53 + 1, Share: 0.5,
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"apiVersion": "example.com/v1", "kind": "Route", "metadata": map[string]any{"name": "a"},
		"weight": int64(1<<53 + 1), "share": 0.5,
	}, u.Object)
}

// celsius encodes itself, through its pointer.
type celsius struct{ degrees int }

func (c *celsius) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"kind": "Temperature", "degrees": c.degrees})
}

func TestToUnstructuredUsesThePointersEncoding(t *testing.T) {
	u, err := ToUnstructured(nil, &celsius{20})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"kind": "Temperature", "degrees": int64(20)}, u.Object)
}

func TestToUnstructuredNeitherModifiesNorAliasesItsInput(t *testing.T) {
	input := map[string]any{
		"kind": "ConfigMap", "apiVersion": "v1",
		"metadata": map[string]any{"name": "a", "creationTimestamp": nil, "labels": map[string]any{"x": "1"}},
		"items":    []any{map[string]any{"k": "v"}, int64(3)},
	}
	before := runtime.DeepCopyJSON(input)
	for _, resource := range []any{input, &unstructured.Unstructured{Object: input}, unstructured.Unstructured{Object: input}} {
		u, err := ToUnstructured(clientscheme.Scheme, resource)
		require.NoError(t, err)
		assert.NotContains(t, u.Object["metadata"], "creationTimestamp")
		u.SetLabels(map[string]string{"x": "2"})
		u.Object["items"].([]any)[0].(map[string]any)["k"] = "changed"
		u.Object["items"].([]any)[1] = "changed"
		assert.Equal(t, before, input)
	}

	svc := service("web")
	copied := svc.DeepCopy()
	u, err := ToUnstructured(clientscheme.Scheme, svc)
	require.NoError(t, err)
	u.SetLabels(map[string]string{"app": "changed"})
	assert.Equal(t, copied, svc, "the typed object's kind stays empty, too")
}

func TestToUnstructuredGivesHandWrittenMapsTheirJSONForm(t *testing.T) {
	u, err := ToUnstructured(nil, map[string]any{
		"kind": "Thing", "replicas": 3, "ratio": float32(0.5), "names": []string{"a"},
		"labels": map[string]string{"a": "b"}, "list": []any{int32(1), map[string]any{"n": uint8(2)}},
		"spec": corev1.ServiceSpec{ClusterIP: "None"}, "none": nil, "nilmap": map[string]any(nil), "nillist": []any(nil),
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"kind": "Thing", "replicas": int64(3), "ratio": 0.5, "names": []any{"a"},
		"labels": map[string]any{"a": "b"}, "list": []any{int64(1), map[string]any{"n": int64(2)}},
		"spec": map[string]any{"clusterIP": "None"}, "none": nil, "nilmap": nil, "nillist": nil,
	}, u.Object)
	assert.NotPanics(t, func() { u.DeepCopy() })
}

func TestToUnstructuredTakesTheKindFromTheScheme(t *testing.T) {
	for name, tc := range map[string]struct {
		resource        any
		version, kind   string
		withoutTheTypes bool
	}{
		"typed":                   {resource: &appsv1.Deployment{}, version: "apps/v1", kind: "Deployment"},
		"what is there stays":     {resource: &appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "deploy"}}, version: "", kind: "deploy"},
		"a version that is there": {resource: &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v9"}}, version: "apps/v9", kind: ""},
		"unregistered":            {resource: &appsv1.Deployment{}, withoutTheTypes: true},
		"own struct":              {resource: route{}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := clientscheme.Scheme
			if tc.withoutTheTypes {
				scheme = runtime.NewScheme()
			}
			u, err := ToUnstructured(scheme, tc.resource)
			require.NoError(t, err)
			assert.Equal(t, tc.version, u.GetAPIVersion())
			assert.Equal(t, tc.kind, u.GetKind())
		})
	}
}

func TestToUnstructuredSaysWhatIsNoObject(t *testing.T) {
	var svc *corev1.Service
	var object Object
	var typedNil Object = svc
	for name, tc := range map[string]struct {
		resource any
		message  string
	}{
		"nil":                     {nil, "the object is nil"},
		"nil pointer":             {svc, "*v1.Service: the object is nil"},
		"pointer to nil pointer":  {&svc, "**v1.Service: the object is nil"},
		"nil in an interface":     {typedNil, "the object is nil"},
		"pointer to nil object":   {&object, "the object is nil"},
		"nil map":                 {map[string]any(nil), "the object is nil"},
		"nil unstructured":        {(*unstructured.Unstructured)(nil), "the object is nil"},
		"empty unstructured":      {&unstructured.Unstructured{}, "the object is nil"},
		"string":                  {"pod", "string: it does not encode to a JSON object"},
		"list":                    {[]any{}, "it does not encode to a JSON object"},
		"null":                    {json.RawMessage("null"), "it does not encode to a JSON object"},
		"channel":                 {map[string]any{"c": make(chan int)}, `field "c"`},
		"metadata of other shape": {map[string]any{"metadata": "x"}, "metadata is not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ToUnstructured(clientscheme.Scheme, tc.resource)
			assert.ErrorContains(t, err, tc.message)
		})
	}
}

func TestConversionRoundTripsAnyJSON(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaves := []*rapid.Generator[any]{
			rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
			rapid.Float64Range(0.1, 0.9).AsAny(),
		}
		if depth > 0 {
			leaves = append(leaves, rapid.MapOfN(rapid.String(), value(depth-1), 0, 3).AsAny(), rapid.SliceOfN(value(depth-1), 0, 3).AsAny())
		}
		return rapid.OneOf(leaves...)
	}
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.MapOfN(rapid.StringMatching(`x[a-z]*`), value(3), 0, 4).Draw(t, "content")
		content["metadata"] = map[string]any{"name": rapid.String().Draw(t, "name")}
		u, err := ToUnstructured(nil, content)
		require.NoError(t, err)
		require.Equal(t, content, u.Object)
		var back map[string]any
		require.NoError(t, Fill(&back, u))
		require.Equal(t, content, back)
	})
}

func TestPartialObjectMetadataConvertsBothWays(t *testing.T) {
	partial := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	u, err := ToUnstructured(clientscheme.Scheme, partial)
	require.NoError(t, err)
	assert.Equal(t, "Pod", u.GetKind())
	var back metav1.PartialObjectMetadata
	require.NoError(t, Fill(&back, u))
	assert.Equal(t, *partial, back)
}
