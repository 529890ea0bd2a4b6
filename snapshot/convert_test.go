package snapshot_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/tables"
)

// moody decodes, fails or panics, as its object says.
type moody struct{ Name string }

var errMoody = errors.New("not today")

func (m *moody) UnmarshalJSON(data []byte) error {
	var u unstructured.Unstructured
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return err
	}
	switch m.Name = u.GetName(); u.GetAnnotations()["mood"] {
	case "panic":
		panic(u.Object["data"])
	case "fail":
		return errMoody
	}
	return nil
}

// widget is an API type with a field of generic content.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec"`
}

func (w *widget) DeepCopyObject() runtime.Object { d := *w; return &d }

// cached has a field that JSON ignores and the reflective converter does not.
type cached struct {
	widget `json:",inline"`
	parsed bool
}

// unencodable is an object that cannot be written as JSON.
type unencodable struct {
	widget `json:",inline"`
	Events chan int `json:"events"`
}

func TestAnObjectThatIsTheElementAlreadyIsShared(t *testing.T) {
	b := compile[everyForm](t, "Unstructured", "Contents", "NamedContents", "UnstructuredValues", "Pointers", "Values")
	u, s := untyped("prod", "web", 80), typed("prod", "web", 80)
	convert := func(query int, src tables.Object) tables.Value {
		value, err := b.Convert(query, src)
		require.NoError(t, err)
		return value
	}

	require.Same(t, u, convert(0, u))
	require.Same(t, s, convert(4, s))
	require.Equal(t, *s, convert(5, s))
	for _, value := range []map[string]any{
		convert(1, u).(map[string]any), convert(2, u).(content), convert(3, u).(unstructured.Unstructured).Object,
	} {
		u.Object["seen"] = value["seen"] == nil // this toggles only if value is u's own map
		require.Equal(t, u.Object["seen"], value["seen"])
	}
}

// The documentation of Convert says so. If apimachinery changes, the documentation must change
// too.
func TestOnlyFieldsOfTypeAnyShareContentWithTheirSource(t *testing.T) {
	type views struct {
		API   []*widget
		Plain []plain
	}
	b := compile[views](t, "API", "Plain")
	u := untyped("prod", "web", 80)
	u.SetLabels(map[string]string{"app": "web"})
	spec := u.Object["spec"].(map[string]any)
	api, err := b.Convert(0, u)
	require.NoError(t, err)
	own, err := b.Convert(1, u)
	require.NoError(t, err)
	ports := spec["ports"].([]any)
	ports[0].(map[string]any)["port"] = int64(81)
	spec["type"] = "changed"
	u.Object["metadata"].(map[string]any)["labels"].(map[string]any)["app"] = "changed"

	require.Equal(t, map[string]any{"ports": ports}, api.(*widget).Spec, "the map is fresh, what it holds is shared")
	require.Equal(t, "web", api.(*widget).Labels["app"])
	require.Equal(t, 80, own.(plain).Spec.Ports[0].Port)
}

func TestAnAPITypeThatTheConverterCannotTakeIsDecodedThroughJSON(t *testing.T) {
	type snap struct{ Cached []*cached }
	b := compile[snap](t, "Cached")
	value, err := b.Convert(0, untyped("prod", "web", 80))
	require.NoError(t, err)
	c := value.(*cached)
	require.Equal(t, "web", c.Name)
	require.False(t, c.parsed)
	require.Equal(t, []any{map[string]any{"port": int64(80)}}, c.Spec["ports"], "integers stay integers")
}

func TestADecodeErrorNamesTheObjectAndTheField(t *testing.T) {
	u := untyped("prod", "web", 80)
	u.Object["spec"] = map[string]any{"type": int64(7)}
	global := untyped("", "web", 80)
	global.Object["metadata"] = map[string]any{"name": "web", "labels": "none"}
	b := compile[everyForm](t, "Pointers", "Plain", "ByUID")

	_, err := b.Convert(0, u)
	require.EqualError(t, err, `convert Service "prod/web" to *v1.Service: json: cannot unmarshal number into Go struct field ServiceSpec.spec.type of type v1.ServiceType`)
	var mismatch *json.UnmarshalTypeError
	require.ErrorAs(t, err, &mismatch)

	_, err = b.Convert(0, global)
	require.ErrorContains(t, err, `convert Service "web" to *v1.Service: json: cannot unmarshal string`)

	u.Object["spec"] = "none"
	_, err = b.Convert(1, u)
	require.ErrorContains(t, err, `convert Service "prod/web" to snapshot_test.plain: json: cannot unmarshal string`)
}

func TestAnObjectThatDoesNotEncodeIsAnError(t *testing.T) {
	b := compile[everyForm](t, "Plain", "Contents", "Unstructured", "Pointers")
	u := untyped("prod", "web", 80)
	u.Object["spec"] = math.Inf(1)
	_, err := b.Convert(0, u)
	require.ErrorContains(t, err, "unsupported value")
	for query := range 4 {
		_, err := b.Convert(query, &unencodable{})
		require.ErrorContains(t, err, `convert unencodable "" to `)
		require.ErrorContains(t, err, "unsupported type: chan int")
	}
}

func TestAnObjectWithoutUIDIsAnErrorInAMapByUID(t *testing.T) {
	b := compile[everyForm](t, "ByUID")
	s := typed("prod", "web", 80)
	s.UID = ""
	_, err := b.Convert(0, s)
	require.ErrorContains(t, err, `convert Service "prod/web" to *v1.Service: it has no UID`)
}

// named is a map type, but not the type of the object's content.
type named map[string]any

func (n *named) UnmarshalJSON(data []byte) error {
	m := moody{}
	err := m.UnmarshalJSON(data)
	*n = named{"is": m.Name}
	return err
}

func TestATypesOwnUnmarshalJSONIsUsed(t *testing.T) {
	type snap struct{ Named []named }
	value, err := compile[snap](t, "Named").Convert(0, untyped("prod", "web", 80))
	require.NoError(t, err)
	require.Equal(t, named{"is": "web"}, value)
}

func TestG8APanicInUnmarshalJSONIsAnError(t *testing.T) {
	type snap struct {
		Moods map[types.NamespacedName]moody
	}
	b := compile[snap](t, "Moods")
	u := untyped("prod", "web", 80)
	u.Object["data"] = "boom"

	u.SetAnnotations(map[string]string{"mood": "panic"})
	_, err := b.Convert(0, u)
	require.EqualError(t, err, `convert Service "prod/web" to snapshot_test.moody: panic: boom`)

	u.SetAnnotations(map[string]string{"mood": "fail"})
	_, err = b.Convert(0, u)
	require.ErrorIs(t, err, errMoody)

	u.SetAnnotations(nil)
	value, err := b.Convert(0, u)
	require.NoError(t, err)
	require.Equal(t, moody{Name: "web"}, value)
}

func TestErrorsNeverTellASecretsContent(t *testing.T) {
	type numbers struct {
		Data map[string]int8 `json:"data"`
	}
	type snap struct {
		Secrets []*corev1.Secret
		Numbers []numbers
		Moods   []moody
		ByUID   map[types.UID]corev1.Secret
	}
	b := compile[snap](t, "Secrets", "Numbers", "Moods", "ByUID")
	secret := func(password any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": "db", "annotations": map[string]any{"mood": "panic"}},
			"data":     map[string]any{"password": password},
		}}
	}
	tests := []struct {
		name     string
		query    int
		password any
		want     string
	}{
		{"a number too large", 1, int64(8675309), `convert Secret "db" to snapshot_test.numbers: field "data": want int8`},
		{"a list", 0, []any{"8675309"}, `convert Secret "db" to *v1.Secret: field "data": want uint8`},
		{"not base64", 0, "!8675309", `convert Secret "db" to *v1.Secret: it does not decode (details are withheld`},
		{"a panic", 2, "8675309", `convert Secret "db" to snapshot_test.moody: it does not decode`},
		{"no UID", 3, "", `it has no UID`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := b.Convert(test.query, secret(test.password))
			require.ErrorContains(t, err, test.want)
			for e := err; e != nil; e = errors.Unwrap(e) {
				require.NotContains(t, e.Error(), "8675309")
			}
		})
	}
}

func TestG8ANumberThatDoesNotFitItsFieldIsInvalidAndIsNotCut(t *testing.T) {
	type snap struct{ Services []*corev1.Service }
	b := compile[snap](t, "Services")
	u := untyped("prod", "web", 1<<32+80) // its lower bits are 80
	_, err := b.Convert(0, u)
	require.ErrorContains(t, err, `convert Service "prod/web" to *v1.Service: json: cannot unmarshal number 4294967376`)
}

func FuzzConvert(f *testing.F) {
	f.Add([]byte(`{"kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80,"targetPort":"http"}]}}`))
	f.Add([]byte(`{"metadata":7,"spec":{"ports":{}},"data":[null]}`))
	f.Add([]byte(`{"metadata":{"labels":{"a":1e999},"creationTimestamp":"never"}}`))
	fields := fieldsOf[everyForm]()
	b := compile[everyForm](f, fields...)
	f.Fuzz(func(t *testing.T, data []byte) {
		u := &unstructured.Unstructured{}
		if json.Unmarshal(data, &u.Object) != nil {
			return
		}
		for query, name := range fields {
			value, err := b.Convert(query, u)
			if (value == nil) == (err == nil) {
				t.Fatalf("%s: value %v, error %v", name, value, err)
			}
		}
	})
}
