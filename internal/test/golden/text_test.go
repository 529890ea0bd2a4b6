package golden

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	uidA = "11111111-aaaa-4aaa-8aaa-111111111111"
	uidB = "22222222-bbbb-4bbb-8bbb-222222222222"
)

func configMap(name, uid, version string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	cm.Namespace, cm.Name, cm.UID, cm.ResourceVersion = "default", name, types.UID(uid), version
	cm.CreationTimestamp = metav1.NewTime(time.Now())
	cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "test"}}
	return cm
}

type snapshot struct {
	ConfigMaps []*corev1.ConfigMap
	ByName     map[types.NamespacedName]*corev1.ConfigMap
	Errors     []struct{ Err error }
	Untyped    []map[string]any
	Cached     string `kates:"-"`
	unexported int
}

func TestWhatDiffersFromRunToRunIsMasked(t *testing.T) {
	owned := configMap("b", uidB, "8")
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap", Name: "a", UID: uidA}}
	owned.Data = map[string]string{"owner": "it is " + uidA, "date": "2026-01-02T03:04:05Z"}
	s := snapshot{ConfigMaps: []*corev1.ConfigMap{configMap("a", uidA, "7"), owned}, unexported: 1, Cached: "x"}
	s.ByName = map[types.NamespacedName]*corev1.ConfigMap{{Namespace: "default", Name: "a"}: s.ConfigMaps[0]}
	s.Errors = []struct{ Err error }{{errors.New("it is wrong")}}
	got, err := Text(&s)
	require.NoError(t, err)
	assert.Equal(t, `ByName:
  default/a:
    apiVersion: v1
    kind: ConfigMap
    metadata:
      creationTimestamp: <time>
      name: a
      namespace: default
      resourceVersion: <version 1>
      uid: <uid 1>
ConfigMaps:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    creationTimestamp: <time>
    name: a
    namespace: default
    resourceVersion: <version 1>
    uid: <uid 1>
- apiVersion: v1
  data:
    date: "2026-01-02T03:04:05Z"
    owner: it is <uid 1>
  kind: ConfigMap
  metadata:
    creationTimestamp: <time>
    name: b
    namespace: default
    ownerReferences:
    - apiVersion: ""
      kind: ConfigMap
      name: a
      uid: <uid 1>
    resourceVersion: <version 2>
    uid: <uid 2>
Errors:
- Err: it is wrong
Untyped: null
`, got)
}

func TestSecretsAreHashedWhateverTheyComeIn(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("hunter2")}}
	secret.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "hunter2"}
	untyped := map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"password": "hunter2"}}
	type own struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Data     map[string][]byte `json:"data"`
		Decoded  string            `json:"decoded"`
	}
	for name, v := range map[string]any{
		"typed, with and without a kind": []any{secret, *secret, &corev1.SecretList{Items: []corev1.Secret{*secret}}},
		"untyped": []map[string]any{untyped, {"apiVersion": "v1", "kind": "List", "items": []any{untyped}},
			{"apiVersion": "v1", "kind": "SecretList", "items": []any{map[string]any{"data": map[string]any{"password": "aHVudGVyMg=="}}}}},
		"a type of the program's": struct {
			Secrets []own          `kates:"secrets"`
			One     *own           `kates:"Secret.v1"`
			ByName  map[string]own `kates:"secret,optional"`
		}{[]own{{Data: secret.Data, Decoded: "hunter2"}}, &own{Data: secret.Data}, map[string]own{"data": {Data: secret.Data}}},
	} {
		for form, text := range map[string]func(...any) (string, error){"text": Text, "bare": Bare} {
			got, err := text(v)
			require.NoError(t, err)
			assert.NotContains(t, got, "hunter2", "%s, %s", name, form)
			assert.NotContains(t, got, "aHVudGVyMg", "%s, %s", name, form)
			assert.Contains(t, got, "password: <sha256 f52fbd32b2b3b86f>", "%s, %s: in all forms the same", name, form)
		}
	}
	reference := map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "web", "deltaType": "add"}
	got, err := Text(reference)
	require.NoError(t, err)
	assert.Equal(t, "apiVersion: v1\ndeltaType: add\nkind: Secret\nname: web\n", got, "what refers to a Secret has none")
	before := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "aHVudGVyMg=="}}
	after := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "aHVudGVyMw=="}}
	fields := strings.Join(Fields(before, after), "\n")
	assert.Contains(t, fields, `data.password: "<sha256 f52fbd32b2b3b86f>" -> "<sha256 `)
	assert.NotContains(t, fields, "aHV")
}

func TestABareTextHasWhatATestWritesDown(t *testing.T) {
	server := configMap("a", uidA, "7")
	server.Generation = 3
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	got, err := Bare(snapshot{ConfigMaps: []*corev1.ConfigMap{server}})
	require.NoError(t, err)
	want, err := Bare(snapshot{ConfigMaps: []*corev1.ConfigMap{wanted}, Untyped: []map[string]any{}})
	require.NoError(t, err)
	assert.Equal(t, want, got)
	wanted.Data = map[string]string{"x": "1"}
	want, err = Bare(snapshot{ConfigMaps: []*corev1.ConfigMap{wanted}})
	require.NoError(t, err)
	assert.NotEqual(t, want, got)
}

func TestTheStateIsThatOfTheObjectsHoweverTheyCame(t *testing.T) {
	object := func(name, generateName, uid, version string, generation, observed int64, owner string) map[string]any {
		metadata := map[string]any{"name": name, "namespace": "default", "uid": uid, "resourceVersion": version, "generation": generation}
		if generateName != "" {
			metadata["generateName"] = generateName
		}
		return map[string]any{
			"apiVersion": "v1", "kind": "Thing", "metadata": metadata,
			"spec": map[string]any{"owner": owner}, "status": map[string]any{"observedGeneration": observed},
		}
	}
	one, err := State([]map[string]any{
		object("web-x1", "web-", uidA, "5", 1, 1, ""), object("web-a2", "web-", uidB, "6", 1, 1, "web-x1"), object("z", "", "u-3", "7", 1, 0, uidA),
	})
	require.NoError(t, err)
	other, err := State([]map[string]any{
		object("z", "", "u-9", "70", 4, 3, uidB), object("web-b2", "web-", uidA, "60", 2, 2, "web-c1"), object("web-c1", "web-", uidB, "50", 7, 7, ""),
	})
	require.NoError(t, err)
	assert.Equal(t, one, other)
	assert.Contains(t, one, "--- # Thing default/web-<any>\n")
	assert.Contains(t, one, "owner: <uid of Thing default/web-<any>>")
	stale, err := State([]map[string]any{object("z", "", "u-9", "70", 4, 4, uidB)})
	require.NoError(t, err)
	assert.Contains(t, stale, "observedGeneration: current")
	assert.Contains(t, one, "observedGeneration: old")
}

func TestFieldsThatDifferAreNamed(t *testing.T) {
	before := map[string]any{"metadata": map[string]any{"resourceVersion": "1", "generation": int64(1), "labels": map[string]any{"a": "b"}}, "items": []any{int64(1), int64(2)}}
	after := map[string]any{"metadata": map[string]any{"resourceVersion": "2", "generation": int64(2)}, "items": []any{int64(1), int64(3)}}
	assert.Equal(t, []string{"items[1]: 2 -> 3", `metadata.labels: {"a":"b"} -> nothing`}, Fields(before, after))
	assert.Empty(t, Fields(before, before))
	assert.Empty(t, Fields(nil, before))
	many := map[string]any{"text": strings.Repeat("ä", 100)}
	for _, name := range "abcdefghijklmnopqrstuvwxyz" {
		many[string(name)] = "x"
	}
	fields := Fields(map[string]any{}, many)
	assert.Len(t, fields, 21)
	assert.Equal(t, "and 7 more", fields[20])
}

func TestADifferenceHasSomeLinesAroundIt(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\n"
	assert.Empty(t, Diff(before, before))
	assert.Equal(t, "  … 3 equal lines\n  d\n  e\n  f\n- g\n+ x\n+ y\n  h\n  i\n  \n", Diff(before, strings.Replace(before, "g", "x\ny", 1)))
	assert.Equal(t, "- a\n  b\n  c\n  d\n", Diff(before, before[2:]))
}
