package asjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// odd is a type of a program, with numbers of each kind and fields that JSON does not read.
type odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Tiny   int8             `json:"tiny"`
	Port   uint16           `json:"port"`
	Whole  uint64           `json:"whole"`
	Rough  float32          `json:"rough"`
	Exact  *float64         `json:"exact"`
	Bytes  []byte           `json:"bytes"`
	Named  map[string]int16 `json:"named"`
	Any    any              `json:"any"`
	Hidden int              `json:"-"`
}

func (o *odd) DeepCopyObject() runtime.Object { c := *o; return &c }

// kinds are types that decode here: built-in ones, metadata, and one of a program.
var kinds = []reflect.Type{
	reflect.TypeFor[corev1.Service](), reflect.TypeFor[corev1.Pod](), reflect.TypeFor[corev1.Secret](),
	reflect.TypeFor[appsv1.Deployment](), reflect.TypeFor[networkingv1.NetworkPolicy](),
	reflect.TypeFor[coordinationv1.Lease](), reflect.TypeFor[metav1.PartialObjectMetadata](),
	reflect.TypeFor[admissionv1.ValidatingWebhookConfiguration](), reflect.TypeFor[odd](),
}

// sameAsJSON fails unless each type decodes from content as from its JSON.
func sameAsJSON(t *testing.T, content map[string]any) {
	t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		return // a value that JSON has not
	}
	for _, kind := range kinds {
		want, got := reflect.New(kind).Interface(), reflect.New(kind).Interface()
		wantErr, gotErr := utiljson.Unmarshal(data, want), Decode(content, got)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("%v of %s: from JSON the error is %v, here it is %v", kind, data, wantErr, gotErr)
		}
		if wantErr != nil {
			continue
		}
		if a, b := text(t, want), text(t, got); a != b {
			t.Fatalf("%v of %s: from JSON it is\n%s\nand here\n%s", kind, data, a, b)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestANumberThatDoesNotFitItsFieldIsAnErrorAndIsNotCut(t *testing.T) {
	port := func(n any) map[string]any {
		return map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": n}}}}
	}
	for _, n := range []any{int64(1<<32 + 80), int64(-1<<31 - 1), float64(1 << 40), 1e300, 80.5} {
		err := Decode(port(n), &corev1.Service{})
		require.ErrorContains(t, err, "spec.ports", "%v", n)
		sameAsJSON(t, port(n))
	}
	var s corev1.Service
	require.NoError(t, Decode(port(80.0), &s))
	assert.Equal(t, int32(80), s.Spec.Ports[0].Port)

	for field, value := range map[string]any{
		"tiny": int64(128), "port": int64(-1), "whole": int64(-1), "bytes": []any{int64(300)},
		"named": map[string]any{"a": int64(1 << 15)}, "rough": 1e300,
	} {
		require.Error(t, Decode(map[string]any{field: value}, &odd{}), field)
	}
}

func TestAFieldThatJSONLeavesOutStaysEmpty(t *testing.T) {
	var o odd
	require.NoError(t, Decode(map[string]any{"-": int64(7), "tiny": int64(1)}, &o))
	assert.Equal(t, odd{Tiny: 1}, o)
}

func TestWhatWasThereBeforeIsGone(t *testing.T) {
	o := odd{Tiny: 3, Named: map[string]int16{"a": 1}}
	require.NoError(t, Decode(map[string]any{"port": int64(80)}, &o))
	assert.Equal(t, odd{Port: 80}, o)
	o.Named = map[string]int16{"a": 1}
	require.NoError(t, Decode(map[string]any{"rough": 0.5, "named": map[string]any{"b": int64(2)}}, &o))
	assert.Equal(t, odd{Rough: 0.5, Named: map[string]int16{"b": 2}}, o)
	require.Error(t, Decode(map[string]any{"tiny": "x"}, &o))
}

func FuzzContentDecodesAsItsJSONDoes(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":4294967376,"targetPort":"http"}]}}`,
		`{"metadata":{"labels":{"a":null},"creationTimestamp":"2024-01-01T00:00:00Z","generation":1},"data":{"a":"eA==","b":[1,300]}}`,
		`{"spec":{"replicas":1.0,"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"1","memory":128}}}]}}}}`,
		`{"tiny":127,"port":65536,"whole":-1,"rough":1e300,"exact":0.1,"bytes":[1],"named":{"a":-1},"any":{"b":[1.5]},"-":7}`,
		`{"spec":{"leaseDurationSeconds":1e10,"renewTime":"2024-01-01T00:00:00.000000Z","holderIdentity":null}}`,
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}},"time":null}],"ownerReferences":[{"controller":true}]}}`,
		`{"webhooks":[{"clientConfig":{"caBundle":"","service":{"port":-1}},"timeoutSeconds":2147483648}]}`,
		`{"spec":{"ingress":[{"ports":[{"port":99999999999,"protocol":"TCP"},{"port":"x","endPort":1}]}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		if utiljson.Unmarshal(data, &content) == nil && content != nil {
			sameAsJSON(t, content)
		}
		if json.Unmarshal(data, &content) == nil && content != nil { // each number is a float64
			sameAsJSON(t, content)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	var content map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(
		`{"metadata":{"name":"a","labels":{"a":"b"}},"spec":{"ports":[{"port":80},{"port":443}],"clusterIP":"10.0.0.1"}}`)))
	require.NoError(b, decoder.Decode(&content))
	b.ReportAllocs()
	for b.Loop() {
		if err := Decode(content, &corev1.Service{}); err != nil {
			b.Fatal(err)
		}
	}
}
