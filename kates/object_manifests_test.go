package kates

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const application = `# an application
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  ports:
  - port: 80
--- # the route to it
apiVersion: getambassador.io/v3alpha1
kind: Mapping
metadata: {name: web}
spec: {weight: 9007199254740993}
---
# nothing but a comment
---

---
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "json"}, "data": {"a": "b"}}
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "json"}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: in-a-list}}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: Pod, metadata: {name: in-a-nested-list}}
---
apiVersion: apps/v1
kind: DeploymentList
items:
- metadata: {name: in-a-typed-list}
---
{apiVersion: v1, kind: Pod, metadata: {name: flow-style}}
`

func service(name string) *Service {
	return &Service{
		ObjectMeta: ObjectMeta{Name: name, Namespace: "prod", Labels: map[string]string{"app": name}},
		Spec:       ServiceSpec{Ports: []ServicePort{{Name: "http", Port: 80}}},
	}
}

func untyped(t *testing.T, manifest string) *Unstructured {
	t.Helper()
	objects, err := ParseManifestsToUnstructured(manifest)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	return objects[0].(*Unstructured)
}

func TestParseManifestsGivesTypedObjectsWhereTheKindIsKnown(t *testing.T) {
	objects, err := ParseManifests(application)
	require.NoError(t, err)
	var got []string
	for _, obj := range objects {
		got = append(got, obj.GetObjectKind().GroupVersionKind().Kind+" "+obj.GetName())
	}
	assert.Equal(t, []string{
		"Service web", "Mapping web", "ConfigMap json", "Secret json", "Pod in-a-list", "Pod in-a-nested-list",
		"Deployment in-a-typed-list", "Pod flow-style",
	}, got)
	assert.EqualValues(t, 80, objects[0].(*Service).Spec.Ports[0].Port)
	assert.Equal(t, map[string]any{"weight": int64(9007199254740993)}, objects[1].(*Unstructured).Object["spec"])
	assert.Equal(t, map[string]string{"a": "b"}, objects[2].(*ConfigMap).Data)
	assert.Equal(t, "apps/v1", objects[6].(*Deployment).APIVersion)
}

func TestParseManifestsToUnstructuredGivesUnstructuredObjectsOnly(t *testing.T) {
	objects, err := ParseManifestsToUnstructured(application)
	require.NoError(t, err)
	require.Len(t, objects, 8)
	for _, obj := range objects {
		assert.IsType(t, &Unstructured{}, obj)
	}
}

func TestParseManifestsOfNothingIsEmpty(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# only a comment\n", "---\n---\n", "---", "apiVersion: v1\nkind: List\n", "{apiVersion: v1, kind: PodList, items: []}"} {
		objects, err := ParseManifests(text)
		require.NoError(t, err, "%q", text)
		assert.Empty(t, objects, "%q", text)
		assert.NotNil(t, objects)
	}
}

func TestParseManifestsIsAsLenientAsKubectl(t *testing.T) {
	objects, err := ParseManifests("apiVersion: v1\nkind: ConfigMap\r\nunknown: true\nmetadata: {name: a, creationTimestamp: null}\ndata: {k: one, k: two}\n")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"k": "two"}, objects[0].(*ConfigMap).Data)
}

func TestParseManifestsNamesTheDocumentThatIsWrong(t *testing.T) {
	good := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n"
	for name, tc := range map[string]struct{ text, message string }{
		"no kind":            {good + good + "apiVersion: v1\n", "manifest document 3: kind is missing"},
		"no apiVersion":      {"# comment\n---\n" + good + "kind: Pod\n", "manifest document 3: apiVersion of the Pod is missing"},
		"apiVersion":         {"apiVersion: a/b/c\nkind: Pod\n", "manifest document 1: apiVersion of the Pod: unexpected GroupVersion"},
		"not an object":      {good + "- a\n- b\n", "manifest document 2: it is not an object"},
		"blanks are no docs": {"\n---\n" + good + "  \n---\n\n---\nhello\n", "manifest document 2: it is not an object"},
		"scalar":             {good + "hello\n", "manifest document 2: it is not an object"},
		"syntax":             {good + "a: b: c\n", "manifest document 2: yaml: "},
		"JSON stream":        {`{"apiVersion":"v1","kind":"Pod"}{"kind":"Pod"}`, "manifest document 2: apiVersion"},
		"separator":          {good + "--- x\n", "manifest document 2: "},
		"shape":              {good + "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: none\n", `manifest document 2: decode Service "web"`},
		"item":               {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}, {kind: Pod}]\n", "manifest document 1: item 2: apiVersion"},
		"item of no shape":   {"apiVersion: v1\nkind: List\nitems: [3]\n", "manifest document 1: item 1: it is not an object"},
		"items of no shape":  {"apiVersion: v1\nkind: List\nitems: {a: b}\n", "manifest document 1: items is not a list"},
		"metadata":           {"apiVersion: v1\nkind: Pod\nmetadata: x\n", "manifest document 1: metadata is not a JSON object"},
		"kind is no object":  {"apiVersion: v1\nkind: DeleteOptions\n", "manifest document 1: DeleteOptions is not the kind of an object"},
		"a secret's content": {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: hunter2\n", `decode Secret "s"`},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := ParseManifests(tc.text, Strict())
			require.ErrorContains(t, err, tc.message)
			assert.Nil(t, objects)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// TestParseManifestsNamesTheValueThatYAMLReadsAsNoString: YAML 1.1 has many words for true and
// false. No message quotes a value.
func TestParseManifestsNamesTheValueThatYAMLReadsAsNoString(t *testing.T) {
	const (
		boolean = " is a boolean, want a string: YAML reads y, yes, on, true and their opposites so, unless they are in quotes"
		number  = " is a number, want a string: put it in quotes"
		is      = `manifest document 1: decode ConfigMap "a" as *v1.ConfigMap: `
	)
	for body, message := range map[string]string{
		`data: {x: y}`:                         is + `data["x"]` + boolean,
		`data: {x: off}`:                       is + `data["x"]` + boolean,
		`data: {x: TRUE}`:                      is + `data["x"]` + boolean,
		`data: {x: 1}`:                         is + `data["x"]` + number,
		`data: {x: 1e3}`:                       is + `data["x"]` + number,
		`data: {x: 0x1F}`:                      is + `data["x"]` + number,
		`data: {x: 1_000}`:                     is + `data["x"]` + number,
		`data: {x: [y]}`:                       is + `data["x"] is a list, want a string`,
		`binaryData: {x: no base64}`:           is + `binaryData["x"] is a string, want base64`,
		`{"data": {"x": true}}`:                "",
		`metadata: {name: a, labels: {v: 1}}`:  "manifest document 1: metadata.labels.v" + number,
		`metadata: {name: on}`:                 "manifest document 1: metadata.name" + boolean,
		`data: {x: 2001-01-01, t: 12:30, z: }`: "", // strings, and null is as good as the empty one
		`data: {x: "y", t: 'on', z: "1"}`:      "",
	} {
		text := "apiVersion: v1\nkind: ConfigMap\n" + body + "\n"
		switch {
		case strings.HasPrefix(body, "{"):
			text = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, ` + strings.TrimPrefix(body, "{")
			message = is + `data["x"]` + boolean
		case !strings.HasPrefix(body, "metadata"):
			text += "metadata: {name: a}\n"
		}
		objects, err := ParseManifests(text)
		if message == "" {
			require.NoError(t, err, body)
			assert.Len(t, objects, 1, body)
			continue
		}
		assert.EqualError(t, err, message, body)
		assert.Empty(t, objects, body)
	}
	_, err := ParseManifests("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 1234, b: yes}\n")
	assert.ErrorContains(t, err, `decode Secret "a" as *v1.Secret: stringData["b"]`+boolean)
	_, err = ParseManifests("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 1234}\n")
	assert.ErrorContains(t, err, `stringData["pin"]`+number)
	assert.NotContains(t, err.Error(), "1234")
	_, err = ParseManifestsToUnstructured("apiVersion: example.com/v1\nkind: Own\nmetadata: {name: a, annotations: {x: no}}\n")
	assert.ErrorContains(t, err, "manifest document 1: metadata.annotations.x"+boolean)
	objects, err := ParseManifests("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 2001-01-01, t: 12:30, z: }\n")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"x": "2001-01-01", "t": "12:30", "z": ""}, objects[0].(*ConfigMap).Data)
}

// TestParseManifestsReadsWhatItCan: one document in a mistake does not cost the others.
func TestParseManifestsReadsWhatItCan(t *testing.T) {
	const text = `apiVersion: v1
kind: Pod
metadata: {name: a}
---
kind: Pod
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {x: 1}}
---
a: b: c
---
apiVersion: v1
kind: List
items: [{apiVersion: v1, kind: Pod, metadata: {name: c}}, 3, {apiVersion: v1, kind: Pod, metadata: {name: d}}, {kind: Pod}]
--- {apiVersion: v1, kind: Pod, metadata: {name: e}}
`
	for _, parse := range []func(string, ...ManifestOption) ([]Object, error){ParseManifests, ParseManifestsToUnstructured} {
		objects, err := parse(text)
		var names []string
		for _, o := range objects {
			names = append(names, o.GetName())
		}
		assert.Equal(t, []string{"a", "c", "d", "e"}, names)
		for _, message := range []string{
			"document 2: apiVersion", "document 3: ", "document 4: yaml", "document 5: item 2: it is not an object", "item 4: apiVersion",
		} {
			assert.ErrorContains(t, err, message)
		}
		objects, strict := parse(text, Strict())
		assert.Nil(t, objects)
		assert.Equal(t, err, strict)
	}
}

func TestParseManifestsTakesTheTypesOfAScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Settings"}, &ConfigMap{})
	objects, err := ParseManifests("apiVersion: example.com/v1\nkind: Settings\ndata: {a: b}\n---\napiVersion: v1\nkind: Pod\n", InScheme(scheme))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "b"}, objects[0].(*ConfigMap).Data)
	assert.IsType(t, &Unstructured{}, objects[1], "the scheme does not know it")
}

func TestNewObjectIsTypedWhereTheKindIsKnown(t *testing.T) {
	known, err := NewObject("Ingress", "networking.k8s.io/v1")
	require.NoError(t, err)
	assert.IsType(t, &networkingv1.Ingress{}, known)
	assert.Equal(t, "networking.k8s.io/v1, Kind=Ingress", known.GetObjectKind().GroupVersionKind().String())

	unknown, err := NewObject("Host", "getambassador.io/v3alpha1")
	require.NoError(t, err)
	assert.Equal(t, NewUnstructured("Host", "getambassador.io/v3alpha1"), unknown)

	for _, wrong := range [][2]string{{"", "v1"}, {"Pod", ""}, {"Pod", "a/b/c"}, {"PodList", "v1"}} {
		_, err := NewObject(wrong[0], wrong[1])
		assert.Error(t, err, "%q", wrong)
	}
}

func TestTypedAndUntypedObjectsConvertIntoEachOtherWithoutSharing(t *testing.T) {
	svc := service("web")
	u, err := NewUnstructuredFromObject(svc)
	require.NoError(t, err)
	assert.Equal(t, "v1, Kind=Service", strings.TrimPrefix(u.GroupVersionKind().String(), "/"))
	assert.Empty(t, svc.Kind)

	back, err := NewObjectFromUnstructured(u)
	require.NoError(t, err)
	svc.TypeMeta = TypeMeta{APIVersion: "v1", Kind: "Service"}
	assert.Equal(t, svc, back)

	host := NewUnstructured("Host", "getambassador.io/v3alpha1")
	host.SetLabels(map[string]string{"a": "b"})
	copied, err := NewObjectFromUnstructured(host)
	require.NoError(t, err)
	copied.(*Unstructured).Object["metadata"].(map[string]any)["labels"].(map[string]any)["a"] = "changed"
	assert.Equal(t, map[string]string{"a": "b"}, host.GetLabels())

	_, err = NewObjectFromUnstructured(nil)
	assert.Error(t, err)
}

func FuzzParseManifests(f *testing.F) {
	f.Add(application)
	f.Add("{")
	f.Add("--- \n{}\n---\n[]")
	f.Add("apiVersion: v1\nkind: PodList\nitems:\n- null\n")
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := ParseManifests(text, Strict())
		if err != nil {
			assert.Nil(t, objects)
			return
		}
		for _, obj := range objects {
			assert.NotEmpty(t, obj.GetObjectKind().GroupVersionKind().Kind)
		}
	})
}
