package kates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// remoteOwner lives in another cluster, and its kind is not served in this one.
func remoteOwner(uid string) *kates.Unstructured {
	return &kates.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "App",
		"metadata": map[string]any{"namespace": "team", "name": "shop", "uid": uid},
	}}
}

func inNamespace(namespace, name string) *kates.ConfigMap {
	m := configMap(name)
	m.Namespace = namespace
	return m
}

func TestTheObjectsOfARemoteOwnerHaveALabelAndNoReference(t *testing.T) {
	fake := katestest.New(t)
	set := kates.OwnedSet{
		Owner: remoteOwner("1"), Remote: true, SetName: "unit", Kinds: []string{"cm"},
		Objects: []kates.Object{inNamespace("one", "a"), inNamespace("two", "b"), configMap("c")},
	}
	result, err := fake.Client.ApplyOwned(t.Context(), set)
	require.NoError(t, err)
	require.Len(t, result.Applied, 3)
	assert.Equal(t, "team", result.Applied[2].Namespace)
	var got *kates.ConfigMap
	require.NoError(t, fake.Client.Get(t.Context(), inNamespace("one", "a"), &got))
	assert.Empty(t, got.OwnerReferences)
	assert.Equal(t, map[string]string{kates.OwnerLabel: "1", kates.OwnedSetLabel: "unit.1"}, got.Labels)
	assert.Equal(t, "App.example.com team/shop", got.Annotations[kates.OwnerAnnotation])
	for kind, keys := range map[string][]string{"": {"team/shop"}, "app": {"team/shop"}, "App.example.com": {"team/shop"}, "App.other": nil, "Pod": nil} {
		of, err := kates.ByRemoteOwner(kind).Keys(got)
		require.NoError(t, err)
		assert.Equal(t, keys, of, kind)
	}
	released := got.DeepCopy()
	delete(released.Labels, kates.OwnerLabel)
	of, err := kates.ByRemoteOwner("").Keys(released)
	require.NoError(t, err)
	assert.Empty(t, of)

	result, err = fake.Client.ApplyOwned(t.Context(), set)
	require.NoError(t, err)
	assert.Len(t, result.Unchanged, 3)

	set.Objects = set.Objects[1:2]
	result, err = fake.Client.ApplyOwned(t.Context(), set)
	require.NoError(t, err)
	assert.Len(t, result.Pruned, 2, "in all namespaces")

	deleting := remoteOwner("1")
	deleting.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	set.Owner = deleting
	_, err = fake.Client.ApplyOwned(t.Context(), set)
	require.ErrorIs(t, err, kates.ErrDeleting)
	set.Objects = nil
	result, err = fake.Client.ApplyOwned(t.Context(), set)
	require.NoError(t, err)
	assert.Len(t, result.Pruned, 1)
}

func TestObjectsOfOthersAreNotThoseOfARemoteOwner(t *testing.T) {
	owned := func(name, uid string) *kates.ConfigMap {
		m := inNamespace("team", name)
		m.Labels = map[string]string{kates.OwnedSetLabel: "unit." + uid}
		m.Annotations = map[string]string{kates.OwnerAnnotation: "App.example.com team/other"}
		if uid != "" {
			m.Labels[kates.OwnerLabel] = uid
		}
		return m
	}
	yes := true
	controlled := owned("controlled", "1")
	controlled.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "9", Controller: &yes}}
	released := owned("released", "1")
	delete(released.Labels, kates.OwnerLabel)
	local := inNamespace("team", "local")
	local.UID = "7"
	fake := katestest.New(t, katestest.WithObjects(owned("others", "2"), inNamespace("team", "free"), controlled, released, local))
	for name, adopting := range map[string]struct{ without, with error }{
		"others":     {kates.ErrControlled, kates.ErrControlled},
		"controlled": {kates.ErrControlled, kates.ErrControlled},
		"released":   {kates.ErrNotOwned, nil},
		"free":       {kates.ErrNotOwned, nil},
	} {
		set := kates.OwnedSet{
			Owner: remoteOwner("1"), Remote: true, SetName: "unit", Objects: []kates.Object{inNamespace("team", name)}, Existing: []kates.Object{},
		}
		_, err := fake.Client.ApplyOwned(t.Context(), set)
		require.ErrorIs(t, err, adopting.without, name)
		if name == "others" { // neither may an owner in this cluster have it
			_, err := fake.Client.ApplyOwned(t.Context(), kates.OwnedSet{Owner: local, SetName: "unit", Objects: set.Objects, Adopt: true, Existing: []kates.Object{}})
			require.ErrorIs(t, err, kates.ErrControlled)
		}
		set.Adopt = true
		_, err = fake.Client.ApplyOwned(t.Context(), set)
		require.ErrorIs(t, err, adopting.with, name)
	}
	// One that others own, too, is released; those that do not belong to the set stay.
	require.NoError(t, fake.Client.Create(t.Context(), owned("mine", "1"), nil))
	result, err := fake.Client.ApplyOwned(t.Context(), kates.OwnedSet{Owner: remoteOwner("1"), Remote: true, SetName: "unit", Kinds: []string{"cm"}})
	require.NoError(t, err)
	var pruned []string
	for _, o := range result.Pruned {
		pruned = append(pruned, o.Name)
	}
	assert.ElementsMatch(t, []string{"free", "released", "mine"}, pruned)
	require.Len(t, result.Released, 1)
	var got *kates.ConfigMap
	require.NoError(t, fake.Client.Get(t.Context(), controlled, &got))
	assert.Empty(t, got.Labels)
	assert.Empty(t, got.Annotations[kates.OwnerAnnotation])
	assert.Len(t, got.OwnerReferences, 1)
}

func TestARemoteOwnerHasAUID(t *testing.T) {
	fake := katestest.New(t)
	for _, set := range []kates.OwnedSet{
		{Owner: remoteOwner(""), Remote: true, SetName: "unit"},
		{Owner: remoteOwner("1"), Remote: true, Plain: true, SetName: "unit"},
		{Owner: map[string]any{}, Remote: true, SetName: "unit"},
	} {
		_, err := fake.Client.ApplyOwned(t.Context(), set)
		assert.Error(t, err)
	}
}
