package jsonform

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var manifests = []string{
	"apiVersion: v1\nkind: Service\nmetadata: {name: a, creationTimestamp: null}\nspec: {ports: [{port: 4294967376}]}\n",
	`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}},7,null]}`,
	"--- # c\napiVersion: v1\nkind: ConfigMap\ndata: {a: &x \"1\", b: *x}\n...\n--- {apiVersion: v1, kind: Secret, metadata: {name: 7}}\n",
	"%YAML 1.2\n---\nkind: A\napiVersion: a/b\n", "a: 1\na: 2\n", "{\"a\":1}{\"b\":2}", "\ufeffkind: A", "? {a: b}\n: c\n", "!!binary x: y", "- a", "a: .inf\nb: 0x7fffffffffffffffff\nc: 1e400\n",
	"apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}}, {kind: Other, apiVersion: v1}]\n", "kind: A\napiVersion: a/b/c\n", "<<: [1]\n",
	"a: " + strings.Repeat("[", 200), "a: \"\\ud800\\xff\"\n",
}

func FuzzAManifestIsReadAsJSONWouldBe(f *testing.F) {
	for _, manifest := range manifests {
		f.Add(manifest)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var all []*unstructured.Unstructured
		err := EachObject(text, func(u *unstructured.Unstructured) error {
			if u.GetKind() == "" || u.GetAPIVersion() == "" {
				t.Fatalf("%q has an object without a kind: %v", text, u)
			}
			all = append(all, u)
			return nil
		})
		for _, u := range all {
			// Each object is a JSON object, and is what it says when it is sent.
			raw, err := Encode(u.Object)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			var back map[string]any
			if err := Decode(raw, &back); err != nil || !sameJSON(back, u.Object) {
				t.Fatalf("%q: %v is sent as %s: %v", text, u.Object, raw, err)
			}
			again := 0
			if err := EachObject(string(raw), func(*unstructured.Unstructured) error { again++; return nil }); err != nil || again > 1 {
				t.Fatalf("%q: of %s there are %d: %v", text, raw, again, err)
			}
			_, _ = Typed(clientscheme.Scheme, u)
		}
		// One document of plain YAML is what the YAML library reads.
		if err != nil || len(all) != 1 || strings.Contains(text, "---") || strings.Contains(text, "...") || strings.ContainsAny(text, "{%\ufeff") {
			return
		}
		var want map[string]any
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil || utiljson.Unmarshal(raw, &want) != nil || strings.HasSuffix(all[0].GetKind(), "List") || want["items"] != nil {
			return
		}
		got := all[0].Object
		if m, ok := got["metadata"].(map[string]any); ok && len(m) > 0 || want["metadata"] != nil {
			return // it is tidied
		}
		delete(want, "metadata")
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	})
}

// programs are values that programs write into maps by hand.
type programs struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Any               any               `json:"any,omitempty"`
	Raw               json.RawMessage   `json:"raw,omitempty"`
	Words             map[string]string `json:"words,omitempty"`
	Small             int32             `json:"small,omitempty"`
}

func FuzzAnObjectKeepsItsContentFromFormToForm(f *testing.F) {
	for _, object := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":null}},"any":[1,1.0,1e21,-0.0],"small":4294967297}`,
		`{"metadata":{"name":7}}`, `{"any":{"a":[{"b":null}]},"raw":{"x":9007199254740993},"words":{"a":"b"}}`, `{"raw":null,"metadata":null}`,
		`{"any":18446744073709551615}`, "{\"any\":\"\xff\"}",
	} {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		if Decode(data, &content) != nil || content == nil {
			return
		}
		copied, err := Copy(content)
		if err != nil || !reflect.DeepEqual(copied, any(content)) {
			t.Fatalf("%s is copied as %v: %v", data, copied, err)
		}
		u, err := ToUnstructured(nil, content)
		if err != nil {
			return
		}
		var same map[string]any
		var pointer *unstructured.Unstructured
		if Fill(&same, u) != nil || Fill(&pointer, u) != nil || !reflect.DeepEqual(same, u.Object) || !reflect.DeepEqual(pointer, u) {
			t.Fatalf("%s: %v, %v", data, same, pointer)
		}
		var typed programs
		if Fill(&typed, u) != nil {
			if !reflect.DeepEqual(typed, programs{}) {
				t.Fatalf("%s: an error left %v", data, typed)
			}
			return
		}
		back, err := ToUnstructured(nil, &typed)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, field := range []string{"any", "words", "raw"} {
			want, had := u.Object[field]
			if field == "any" {
				want = inFloats(t, want)
			}
			if had && !empty(want) && !sameJSON(want, back.Object[field]) {
				t.Fatalf("%s: %s is %v, want %v", data, field, back.Object[field], want)
			}
		}
	})
}

// inFloats is a value as encoding/json decodes it into a struct of a program: a number is a
// float64, which is not exact for integers past 2^53.
func inFloats(t *testing.T, v any) (decoded any) {
	raw, err := Encode(v)
	if err == nil {
		err = json.Unmarshal(raw, &decoded)
	}
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	return decoded
}

// sameJSON compares two values as they are sent: 1.0 is sent as 1, and -0 is read as 0.
func sameJSON(a, b any) bool {
	x, _ := Encode(a)
	y, _ := Encode(b)
	zero := func(text []byte) string { return strings.ReplaceAll(string(text), "-0", "0") }
	return zero(x) == zero(y)
}

// empty reports whether a Go type may leave a value out, or read it as none.
func empty(v any) bool {
	m, isMap := v.(map[string]any)
	for _, member := range m {
		if member == nil {
			return true
		}
	}
	return v == nil || isMap && len(m) == 0
}

func FuzzConvertingToAnotherTypeLosesNothing(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a"},"data":{"a":"b"},"immutable":true}`))
	f.Add([]byte(`{"metadata":{"name":"a","generation":9007199254740993},"binaryData":{"a":"AA=="}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var from corev1.ConfigMap
		if utiljson.Unmarshal(data, &from) != nil {
			return
		}
		u := &unstructured.Unstructured{}
		if err := Convert(clientscheme.Scheme, &from, u); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		var back corev1.ConfigMap
		if err := Convert(clientscheme.Scheme, u, &back); err != nil {
			t.Fatalf("%s: %v of %v", data, err, u)
		}
		from.TypeMeta = back.TypeMeta
		a, _ := json.Marshal(&from)
		b, _ := json.Marshal(&back)
		if string(a) != string(b) {
			t.Fatalf("%s: %s, want %s", data, b, a)
		}
	})
}

func FuzzAPathIsSplitAndItsFieldsAreDropped(f *testing.F) {
	f.Add(`spec.a\.b`, []byte(`{"spec":{"a.b":1,"list":[{"a":"x"}]}}`))
	f.Add(`.`, []byte(`{}`))
	f.Add(`spec.list.a`, []byte(`{"spec":{"list":[{"a":"x"},7,null,{"a":[1,""]}]}}`))
	f.Fuzz(func(t *testing.T, path string, data []byte) {
		names := SplitPath(path)
		u := &unstructured.Unstructured{}
		if names == nil || utiljson.Unmarshal(data, &u.Object) != nil || u.Object == nil {
			return
		}
		if _, err := FieldValues(u, names); err != nil {
			t.Fatal(err)
		}
		if err := DropFields(u, [][]string{names}); err != nil {
			t.Fatal(err)
		}
		if _, there, _ := unstructured.NestedFieldNoCopy(u.Object, names...); there {
			t.Fatalf("%q of %s is still there: %v", path, data, u)
		}
	})
}
