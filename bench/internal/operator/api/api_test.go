package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func sample() *App {
	return &App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", Labels: map[string]string{"x": "y"}},
		Spec:       AppSpec{Replicas: 2, Image: "web:1", Settings: map[string]string{"b": "2", "a": "1"}},
		Status:     AppStatus{Conditions: []metav1.Condition{{Type: Ready}}},
	}
}

func TestAnAppHasFiveObjectsInOrder(t *testing.T) {
	w := Wanted(sample())
	listed := Listed[runtime.Object](w)
	assert.Len(t, listed, 5)
	assert.Equal(t, []string{"web-a", "web-b"}, []string{w.Settings[0].Name, w.Settings[1].Name})
	assert.Equal(t, w, Wanted(sample()))
	*w.Deployment.Spec.Replicas = 9
	assert.EqualValues(t, 2, *Wanted(sample()).Deployment.Spec.Replicas)
	for _, o := range Listed[Object](w) {
		assert.Equal(t, "web", o.GetLabels()[Label])
		assert.Equal(t, "a", o.GetNamespace())
	}
}

func TestCopiesShareNothing(t *testing.T) {
	app := sample()
	list := &AppList{Items: []App{*app}}
	c, l := app.DeepCopy(), list.DeepCopyObject().(*AppList)
	assert.Equal(t, app, c)
	assert.Equal(t, list, l)
	for _, copied := range []*App{c, &l.Items[0]} {
		copied.Labels["x"], copied.Spec.Settings["a"], copied.Status.Conditions[0].Type = "z", "z", "z"
	}
	assert.Equal(t, sample(), app)
}

func TestTheSchemeKnowsTheKindOfTheDefinition(t *testing.T) {
	var definition struct {
		Spec struct {
			Group string
			Names struct{ Kind, ListKind string }
		}
	}
	require.NoError(t, yaml.Unmarshal(Definition, &definition))
	assert.Equal(t, GroupVersion.Group, definition.Spec.Group)
	for kind, want := range map[string]runtime.Object{definition.Spec.Names.Kind: &App{}, definition.Spec.Names.ListKind: &AppList{}} {
		kinds, _, err := NewScheme().ObjectKinds(want)
		require.NoError(t, err)
		assert.Equal(t, GroupVersion.WithKind(kind), kinds[0])
	}
}
