package kates_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestMetadataThatWouldBeMisreadIsAnErrorAndWritesNothing: in YAML, namespace: 123 is a number. A
// program that reads it as no namespace writes to, or deletes in, the default one. If one label
// is a number, the accessors of an untyped object return no labels.
func TestMetadataThatWouldBeMisreadIsAnErrorAndWritesNothing(t *testing.T) {
	for field, value := range map[string]any{
		"namespace": 123, "name": true, "generateName": 1, "uid": 5, "resourceVersion": 7, "labels": "app=web", "annotations": []any{},
		"labels.version": 1.5, "annotations.on": true, "finalizers": "example.com/x", "ownerReferences": map[string]any{},
	} {
		fake := katestest.New(t, katestest.WithObjects(configMap("x")))
		metadata := map[string]any{"name": "x"}
		switch field {
		case "labels.version":
			metadata["labels"] = map[string]any{"version": value, "app": "web"}
		case "annotations.on":
			metadata["annotations"] = map[string]any{"on": value}
		default:
			metadata[field] = value
		}
		object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
		want := "metadata." + field + " is "
		assert.ErrorContains(t, fake.Client.Delete(t.Context(), object, nil), want)
		assert.ErrorContains(t, fake.Client.Create(t.Context(), object, nil), want)
		assert.ErrorContains(t, fake.Client.Update(t.Context(), &unstructured.Unstructured{Object: object}, nil), want)
		assert.ErrorContains(t, fake.Client.Upsert(t.Context(), configMap("x"), object, nil), want)
		assert.ErrorContains(t, fake.Client.Get(t.Context(), object, nil), want)
		assert.Empty(t, fake.Dynamic.Actions(), field)
	}
	_, err := kates.ParseManifestsToUnstructured("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: 123}\n")
	assert.ErrorContains(t, err, "metadata.namespace is a number, want a string: put it in quotes")
	_, err = kates.ParseManifestsToUnstructured("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {v: 1}}\n")
	assert.ErrorContains(t, err, "metadata.labels.v is a number, want a string: put it in quotes")
	objects, err := kates.ParseManifestsToUnstructured("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace:, labels: {a: b, none: }}\n")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "b"}, objects[0].GetLabels(), "null is as good as absent")
	assert.Error(t, katestest.NewClient(t).Get(t.Context(), map[string]any{"apiVersion": 1, "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}}, nil))
}

// TestMergeUpdateLosesNoMetadata, not even fields that the accessors of an untyped object ignore.
func TestMergeUpdateLosesNoMetadata(t *testing.T) {
	target := &kates.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x", "labels": map[string]string{"app": "web"}}}}
	kates.MergeUpdate(target, &kates.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"labels": map[string]string{"by": "hand"}, "annotations": map[string]any{"number": 1}, "finalizers": []string{"example.com/x"},
	}}})
	assert.Equal(t, map[string]any{
		"name": "x", "labels": map[string]any{"app": "web", "by": "hand"}, "annotations": map[string]any{"number": int64(1)}, "finalizers": []any{"example.com/x"},
	}, target.Object["metadata"])
}
