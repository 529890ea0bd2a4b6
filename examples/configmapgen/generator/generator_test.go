package generator

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func rootOf(data map[string]string) *ConfigTemplate {
	root := &ConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	root.Spec.ConfigMaps = []ConfigMapTemplate{{Name: "env", Data: data}}
	return root
}

func theSecret(name string) *corev1.Secret {
	if name != "db" {
		return nil
	}
	return &corev1.Secret{Data: map[string][]byte{"user": []byte("sam")}}
}

func TestATemplateTakesValuesOfSecretsAndOfItsRoot(t *testing.T) {
	all, err := render(rootOf(map[string]string{"a": `{{secret "db" "user"}} of {{.Name}} in {{.Namespace}}`, "b": "plain"}), theSecret)
	require.NoError(t, err)
	require.Len(t, all, 1)
	cm := all[0].(*corev1.ConfigMap)
	assert.Equal(t, "shop/web-env", cm.Namespace+"/"+cm.Name)
	assert.Equal(t, map[string]string{"a": "sam of web in shop", "b": "plain"}, cm.Data)
}

func TestAProblemSaysWhereItIsAndNothingOfASecret(t *testing.T) {
	for text, want := range map[string]Problem{
		`{{secret "ca" "crt"}}`:                {"SecretNotFound", `configMaps[env].data[a]: there is no secret "ca"`},
		`{{secret "db" "crt"}}`:                {"SecretNotFound", `configMaps[env].data[a]: secret "db" has no "crt"`},
		`{{secret "db"}}`:                      {"InvalidTemplate", `configMaps[env].data[a]: template: template:1:2: executing "template" at <secret>: wrong number of args for secret: want 2 got 1`},
		`{{`:                                   {"InvalidTemplate", `configMaps[env].data[a]: template: template:1: unclosed action`},
		`{{.Password}}`:                        {"InvalidTemplate", `configMaps[env].data[a]: template: template:1:2: executing "template" at <.Password>: can't evaluate field Password in type struct { Name string; Namespace string }`},
		`{{slice (secret "db" "user") 1 999}}`: {"InvalidTemplate", `configMaps[env].data[a]: template: template:1:2: executing "template" at <slice (secret "db" "user") 1 999>: error calling slice: index out of range: 999`},
	} {
		_, err := render(rootOf(map[string]string{"a": text}), theSecret)
		var problem *Problem
		require.ErrorAs(t, err, &problem, text)
		assert.Equal(t, want, *problem, text)
	}
}

func TestACopyOfATemplateSharesNothing(t *testing.T) {
	root := rootOf(map[string]string{"a": "b"})
	root.Labels = map[string]string{"a": "b"}
	root.Status = ConfigTemplateStatus{ConfigMaps: []string{"a"}, Conditions: []metav1.Condition{{Type: "a"}}}
	list := &ConfigTemplateList{Items: []ConfigTemplate{*root}}
	other := list.DeepCopyObject().(*ConfigTemplateList)
	require.Equal(t, list, other)
	changed := &other.Items[0]
	changed.Labels["a"], changed.Spec.ConfigMaps[0].Data["a"] = "c", "c"
	changed.Spec.ConfigMaps[0].Name, changed.Status.ConfigMaps[0], changed.Status.Conditions[0].Type = "c", "c", "c"
	assert.Equal(t, "b b", root.Labels["a"]+" "+root.Spec.ConfigMaps[0].Data["a"])
	assert.Equal(t, "env a a", root.Spec.ConfigMaps[0].Name+" "+root.Status.ConfigMaps[0]+" "+root.Status.Conditions[0].Type)
}

func TestTheRegistryIsAsItWasLeft(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "registry.json")
	r := &FileRegistry{Path: path}
	require.NoError(t, r.Remove(ctx, "nobody"))
	require.NoError(t, r.Put(ctx, "a", []string{"x"}))
	require.NoError(t, r.Put(ctx, "a", []string{"x", "y"}))
	require.NoError(t, r.Put(ctx, "b", nil))
	require.NoError(t, r.Remove(ctx, "b"))
	entries, err := (&FileRegistry{Path: path}).Entries()
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{"a": {"x", "y"}}, entries)

	r = &FileRegistry{Path: filepath.Join(path, "not-a-folder")}
	require.Error(t, r.Put(ctx, "a", nil))
}
