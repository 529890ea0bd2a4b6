package kates_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// What docs/migrating.md says of programs that knew Emissary's kates.

func TestADocumentWithoutAnAPIVersionLosesNoOther(t *testing.T) {
	const annotation = "apiVersion: example.com/v1\nkind: Mapping\nname: a\n---\nkind: Mapping\nname: b\n---\napiVersion: example.com/v1\nkind: Mapping\nname: c\n"
	for _, parse := range []func(string, ...kates.ManifestOption) ([]kates.Object, error){kates.ParseManifests, kates.ParseManifestsToUnstructured} {
		objects, err := parse(annotation)
		assert.EqualError(t, err, "manifest document 2: apiVersion of the Mapping is missing")
		require.Len(t, objects, 2)
		assert.Equal(t, "a", objects[0].(*kates.Unstructured).Object["name"])
		assert.Equal(t, "c", objects[1].(*kates.Unstructured).Object["name"])
		objects, err = parse(annotation, kates.Strict())
		assert.Error(t, err)
		assert.Empty(t, objects)
	}
}

func TestListsInManifestsGiveTheirItemsAtAnyDepth(t *testing.T) {
	objects, err := kates.ParseManifests(`
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]}
- {apiVersion: v1, kind: ServiceList, items: [{metadata: {name: b}}]}
- {apiVersion: example.com/v1, kind: AllowList, metadata: {name: c}, items: [d]}
`)
	require.NoError(t, err)
	require.Len(t, objects, 3)
	assert.IsType(t, &kates.Pod{}, objects[0])
	assert.IsType(t, &kates.Service{}, objects[1])
	assert.Equal(t, "c", objects[2].GetName(), "what has a name is no list")
}

func TestTheDefaultSchemeHasNoDefinitionsAndNoGatewayAPI(t *testing.T) {
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"},
	} {
		text := "apiVersion: " + kind.GroupVersion().String() + "\nkind: " + kind.Kind + "\nmetadata: {name: x}\n"
		objects, err := kates.ParseManifests(text)
		require.NoError(t, err)
		assert.IsType(t, &kates.Unstructured{}, objects[0])
		scheme := runtime.NewScheme()
		scheme.AddKnownTypeWithName(kind, &unregistered{})
		objects, err = kates.ParseManifests(text, kates.InScheme(scheme))
		require.NoError(t, err)
		assert.IsType(t, &unregistered{}, objects[0])
	}
}

func TestTheJSONOfAnEmptyFieldIsEmptyAndThatOfAnAbsentKindIsNull(t *testing.T) {
	type snapshot struct {
		Slice  []*kates.ConfigMap
		Values []kates.Secret
		Map    map[string]*kates.Pod
		Absent []map[string]any `kates:"hosts.example.com,optional"`
	}
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t)
		text, err := json.Marshal(katestest.Snapshot[snapshot](t, server.Client(t), kates.Query{Name: "Slice", Namespace: "default"}))
		require.NoError(t, err)
		assert.JSONEq(t, `{"Slice":[],"Values":[],"Map":{},"Absent":null}`, string(text))
	})
}

func TestChangedIsClosedWhenTheWatchHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acc, err := katestest.New(t).Client.Watch(t.Context(), kates.Query{Name: "Maps", Kind: "configmaps"})
		require.NoError(t, err)
		acc.Close()
		for range acc.Changed() {
		}
		var snap struct{ Maps []*kates.ConfigMap }
		changed, err := acc.Update(t.Context(), &snap)
		assert.ErrorIs(t, err, kates.ErrClosed)
		assert.False(t, changed)
	})
}
