package project

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// keeping makes a Keep of paths.
func keeping(t testing.TB, paths ...string) *Keep {
	t.Helper()
	k, err := ParseKeep(strings.Join(paths, ","))
	require.NoError(t, err)
	return k
}

// kept are kinds with the fields that are kept of them.
var kept = []struct {
	of    any
	paths []string
}{
	{corev1.Pod{}, []string{"metadata.name", "spec.nodeName", "status.podIP", "metadata.deletionTimestamp"}},
	{corev1.Pod{}, []string{"spec.containers.image", "spec.containers.resources.limits", "spec.volumes.hostPath"}},
	{corev1.Pod{}, []string{"metadata.labels.a", `metadata.annotations["long text"]`, "metadata.ownerReferences.uid"}},
	{corev1.Pod{}, []string{"spec.containers.livenessProbe.httpGet.port", "spec.containers.ports", "status"}},
	{corev1.Pod{}, []string{"metadata", "spec.hostNetwork", "spec.affinity.nodeAffinity", "spec.overhead.cpu"}},
	{corev1.ConfigMap{}, []string{"data.a", "binaryData", "immutable"}},
	{corev1.Secret{}, []string{"type", `data["long text"]`}},
	{appsv1.Deployment{}, []string{"spec.template.spec.containers.name", "status.conditions.type"}},
	{discoveryv1.EndpointSlice{}, []string{"endpoints.conditions.ready", "ports", "endpoints.deprecatedTopology.a"}},
	{networkingv1.Ingress{}, []string{"spec.rules.http.paths.backend", "spec.tls.secretName"}},
}

// untypedOf is what JSON makes of a value.
func untypedOf(t *testing.T, from any) map[string]any {
	t.Helper()
	var content map[string]any
	require.NoError(t, throughJSON(from, &content))
	return content
}

// TestWhatIsKeptIsTheWholeObjectPruned: whole objects that are pruned after they were decoded, and
// objects of which only what is kept was decoded, are the same, whatever the encoding.
func TestWhatIsKeptIsTheWholeObjectPruned(t *testing.T) {
	for i, c := range kept {
		typ := reflect.TypeOf(c.of)
		t.Run(fmt.Sprint(typ.Name(), i), func(t *testing.T) {
			k := keeping(t, c.paths...)
			filter, err := k.For(typ)
			require.NoError(t, err)
			for seed := range uint64(40) {
				from := reflect.New(typ).Interface()
				filler(seed).Fill(from)
				raw, err := from.(interface{ Marshal() ([]byte, error) }).Marshal()
				require.NoError(t, err)
				whole := reflect.New(typ).Interface() // as the wire brings it
				require.NoError(t, whole.(protobuf).Unmarshal(raw))
				content := untypedOf(t, whole)
				before := untypedOf(t, whole)
				pruned := k.Tree(content)
				require.Equal(t, before, content, "nothing was written to")
				prune(whole, k)

				fromProto := reflect.New(typ).Interface()
				less, err := filter.Protobuf(raw)
				require.NoError(t, err)
				require.LessOrEqual(t, len(less), len(raw))
				require.NoError(t, fromProto.(protobuf).Unmarshal(less))
				require.Equal(t, whole, fromProto, "seed %d", seed)

				text, err := json.Marshal(before)
				require.NoError(t, err)
				fromText, err := filter.JSON(text)
				require.NoError(t, err)
				var untyped map[string]any
				require.NoError(t, json.Unmarshal(fromText, &untyped))
				require.Equal(t, pruned, untyped, "seed %d", seed)
				fromText, err = k.Untyped().JSON(text)
				require.NoError(t, err)
				untyped = nil
				require.NoError(t, json.Unmarshal(fromText, &untyped))
				require.Equal(t, pruned, untyped, "seed %d", seed)
				fromJSON, viaTree := reflect.New(typ).Interface(), reflect.New(typ).Interface()
				require.NoError(t, json.Unmarshal(fromText, fromJSON))
				require.NoError(t, throughJSON(pruned, viaTree))
				require.Equal(t, viaTree, fromJSON, "seed %d", seed)
			}
		})
	}
}

// prune sets the fields of an object to zero that are not kept: the specification.
func prune(object any, k *Keep) {
	zeroOthers(reflect.ValueOf(object).Elem(), k.Paths())
}

func zeroOthers(v reflect.Value, paths []Path) {
	for _, p := range paths {
		if len(p) == 0 {
			return
		}
	}
	below := func(name string) (rest []Path) {
		for _, p := range paths {
			if p[0] == name {
				rest = append(rest, p[1:])
			}
		}
		return rest
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			zeroOthers(v.Elem(), paths)
		}
	case reflect.Slice:
		for i := range v.Len() {
			zeroOthers(v.Index(i), paths)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if below(key.String()) == nil {
				v.SetMapIndex(key, reflect.Value{})
			}
		}
		if v.Len() == 0 {
			v.SetZero() // what is empty is not on the wire
		}
	case reflect.Struct:
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag.Get("json")
			name, _, _ := strings.Cut(tag, ",")
			switch rest := below(name); {
			case name == "":
				zeroOthers(v.Field(i), paths)
			case rest == nil:
				v.Field(i).SetZero()
			default:
				zeroOthers(v.Field(i), rest)
			}
		}
	}
}

func TestAPathToAFieldThatTheKindHasNotIsAnErrorThatNamesALikeOne(t *testing.T) {
	for path, says := range map[string]string{
		"spec.nodeNme":                    "a Pod has no field spec.nodeNme; there is spec.nodeName",
		"spec.containers.imag":            "a Pod has no field spec.containers.imag; there is spec.containers.image",
		"stats":                           "a Pod has no field stats; there is status",
		"spec.nodename":                   "there is spec.nodeName",
		"spec.somethingElse":              "a Pod has no field spec.somethingElse",
		"spec.nodeName.x":                 "spec.nodeName of a Pod is a string: it has no fields",
		"metadata.creationTimestamp.time": "metadata.creationTimestamp of a Pod has a form of its own",
		"spec.overhead.cpu.value":         "spec.overhead.cpu of a Pod has a form of its own",
		"metadata.labels.a.b":             "metadata.labels.a of a Pod is a string",
	} {
		_, err := keeping(t, path).For(reflect.TypeFor[corev1.Pod]())
		assert.ErrorContains(t, err, says)
	}
}

func TestPathsAreMergedSortedAndReadAgain(t *testing.T) {
	for text, want := range map[string]string{
		"spec.b,spec.a":       "spec.a, spec.b",
		"spec.a,spec, spec.b": "spec",
		"spec,spec.a":         "spec",
		"a.b.c,a.b":           "a.b",
		`metadata.labels["app.kubernetes.io/name"]`: `metadata.labels["app.kubernetes.io/name"]`,
		`metadata.labels.app\.kubernetes\.io/name`:  `metadata.labels["app.kubernetes.io/name"]`,
		`data["a,b"],data["a\"]"]`:                  `data["a\"]"], data["a,b"]`,
		`a["b"].c["d"]`:                             "a.b.c.d",
	} {
		assert.Equal(t, want, keeping(t, text).String(), text)
		assert.Equal(t, want, keeping(t, want).String(), "it is read again")
	}
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "a,", `a[b]`, `a["b"`, `a["b"]c`, `a[""]`, "a,,b"} {
		_, err := ParseKeep(text)
		assert.Error(t, err, text)
	}
	_, err := ParsePath("a,b")
	assert.Error(t, err)
}

func TestHoldsIsTrueOfWhatIsKeptAsAWhole(t *testing.T) {
	k := keeping(t, "metadata.labels", "spec.containers.image", "status")
	for path, want := range map[string]bool{
		"metadata.labels": true, "metadata.labels.a": true, "metadata": false, "status.phase": true,
		"spec.containers": false, "spec.containers.image": true, "data": false, "spec.containers.image.x": true,
	} {
		assert.Equal(t, want, k.Holds(strings.Split(path, ".")...), path)
	}
}

// TestBrokenBytesAreAnError: what is left of them cannot be told.
func TestBrokenBytesAreAnError(t *testing.T) {
	filter, err := keeping(t, "spec.nodeName").For(reflect.TypeFor[corev1.Pod]())
	require.NoError(t, err)
	for _, text := range []string{
		``, `{`, `{"spec"`, `{"spec":`, `{"spec":{`, `{"spec":{"nodeName"`, `{"spec":{"nodeName":"a`, `{"a":[}`,
		`{"spec":{}}}`, `{"spec":{} "a":1}`, `{,}`, `{"a":"\`, `{spec:1}`, `{"spec":{}} {}`, `{"\u":1}`, `{"a":{"b":1}`,
		`{"spec":` + strings.Repeat("[", 5000), `{"a":1,}x`,
	} {
		_, err := filter.JSON([]byte(text))
		assert.Error(t, err, text)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node", Hostname: "host"}}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	for i := range len(raw) - 1 {
		less, err := filter.Protobuf(raw[:i+1])
		if err == nil { // a message may end after any field
			assert.NoError(t, new(corev1.Pod).Unmarshal(less), "%d", i)
		}
	}
}

// TestAKeyInEscapesIsTheSameKey: letters may be written so.
func TestAKeyInEscapesIsTheSameKey(t *testing.T) {
	less, err := keeping(t, "spec.a").Untyped().JSON([]byte(` { "\u0073pec" : { "b" : [ "}" , 2 ] , "a" : [ 1 , { } ] } , "x" : "\"" } `))
	require.NoError(t, err)
	assert.Equal(t, `{"\u0073pec":{"a":[ 1 , { } ]}}`, string(less))
}

// TestWhatHasAnotherFormStays: the decoder says what is wrong with it.
func TestWhatHasAnotherFormStays(t *testing.T) {
	k := keeping(t, "spec.a.b")
	less, err := k.Untyped().JSON([]byte(`{"spec":{"a":"text","c":1},"x":null}`))
	require.NoError(t, err)
	assert.Equal(t, `{"spec":{"a":"text"}}`, string(less))
	assert.Equal(t, map[string]any{"spec": nil}, k.Tree(map[string]any{"spec": nil, "x": 1}))
}

func TestATreeOfWhichEverythingIsKeptIsNotCopied(t *testing.T) {
	content := map[string]any{"spec": map[string]any{"a": []any{map[string]any{"b": 1}}}}
	same := keeping(t, "spec.a.b", "status").Tree(content)
	assert.Equal(t, reflect.ValueOf(content).Pointer(), reflect.ValueOf(same).Pointer())
}

// FuzzKeep: whatever is filtered, nothing panics, and what decodes as a whole decodes in part, to
// what is kept of the whole.
func FuzzKeep(f *testing.F) {
	k := keeping(f, "metadata.labels.a", "spec.containers.image", "spec.volumes", "status.podIP")
	filter, err := k.For(reflect.TypeFor[corev1.Pod]())
	require.NoError(f, err)
	for seed := range uint64(5) {
		var pod corev1.Pod
		filler(seed).Fill(&pod)
		raw, err := pod.Marshal()
		require.NoError(f, err)
		text, err := json.Marshal(&pod)
		require.NoError(f, err)
		f.Add(raw, string(text), "spec.a")
	}
	f.Add([]byte{10, 0}, `{"metadata":{"labels":[{"a":{}}]}}`, `a\.b["c"],d`)
	f.Fuzz(func(t *testing.T, raw []byte, text, paths string) {
		var whole, part corev1.Pod
		less, err := filter.Protobuf(raw)
		if whole.Unmarshal(raw) == nil {
			require.NoError(t, err)
			require.NoError(t, part.Unmarshal(less))
			prune(&whole, k)
			require.Equal(t, untypedOf(t, &whole), untypedOf(t, &part))
		}
		var content, pruned map[string]any
		shorter, err := k.Untyped().JSON([]byte(text))
		twice, err2 := kjson.UnmarshalStrict([]byte(text), &content, kjson.DisallowDuplicateFields)
		if err2 == nil && len(twice) == 0 && content != nil {
			require.NoError(t, err)
			require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(shorter, &pruned))
			require.Equal(t, k.Tree(content), pruned)
		}
		if any, err := ParseKeep(paths); err == nil {
			again, err := ParseKeep(any.String())
			require.NoError(t, err)
			require.Equal(t, any, again)
		}
	})
}

func BenchmarkKeep(b *testing.B) {
	filter, err := keeping(b, "metadata.name", "metadata.namespace", "spec.nodeName", "spec.hostNetwork", "status.podIP", "status.phase").
		For(reflect.TypeFor[corev1.Pod]())
	require.NoError(b, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}}
	for range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "c", Image: "registry.example.com/image:1", Env: make([]corev1.EnvVar, 20), Args: strings.Fields(strings.Repeat("an-argument ", 20)),
		})
	}
	raw, err := pod.Marshal()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		less, err := filter.Protobuf(raw)
		var into corev1.Pod
		if err != nil || into.Unmarshal(less) != nil {
			b.Fatal(err)
		}
	}
}
