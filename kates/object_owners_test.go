package kates

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSetOwnerReferencesMakesTheOwnerTheController(t *testing.T) {
	owner := &Deployment{ObjectMeta: ObjectMeta{Name: "web", UID: "1"}}
	yes := true
	want := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1", Controller: &yes, BlockOwnerDeletion: &yes}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "config", UID: "2"}
	former := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "old", UID: "3", Controller: &yes}
	plain := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"}
	references := []metav1.OwnerReference{other, former, plain}

	fresh := &Pod{}
	owned := &Pod{ObjectMeta: ObjectMeta{OwnerReferences: references}}
	untyped := NewUnstructured("Host", "getambassador.io/v2")
	SetOwnerReferences(owner, fresh, owned, untyped)
	assert.Equal(t, []metav1.OwnerReference{want}, fresh.OwnerReferences)
	assert.Equal(t, []metav1.OwnerReference{other, want}, owned.OwnerReferences)
	assert.Equal(t, []metav1.OwnerReference{want}, untyped.GetOwnerReferences())
	assert.Equal(t, []metav1.OwnerReference{other, former, plain}, references, "a slice that was there is not written to")
	assert.Empty(t, owner.Kind)
	*fresh.OwnerReferences[0].Controller = false
	assert.True(t, *owned.OwnerReferences[1].Controller, "objects do not share references")

	SetOwnerReferences(owner, owned)
	assert.Equal(t, []metav1.OwnerReference{other, want}, owned.OwnerReferences, "twice is once")
}

func TestHasOwnerReferenceTellsOwnersByUID(t *testing.T) {
	owner := &Deployment{ObjectMeta: ObjectMeta{Name: "web", UID: "1"}}
	pod := &Pod{}
	assert.False(t, HasOwnerReference(owner, pod))
	SetOwnerReferences(owner, pod)
	assert.True(t, HasOwnerReference(owner, pod))
	recreated := &Deployment{ObjectMeta: ObjectMeta{Name: "web", UID: "2"}}
	assert.False(t, HasOwnerReference(recreated, pod))
	assert.False(t, HasOwnerReference(&Deployment{ObjectMeta: ObjectMeta{Name: "web"}}, pod))
}

func TestHasOwnerReferenceTellsOwnersWithoutUIDByGroupKindAndName(t *testing.T) {
	owner := &Deployment{ObjectMeta: ObjectMeta{Name: "web"}}
	pod := &Pod{}
	SetOwnerReferences(owner, pod)
	assert.True(t, HasOwnerReference(named("Deployment", "apps/v1beta1", "web"), pod))
	assert.False(t, HasOwnerReference(named("Deployment", "example.com/v1", "web"), pod))
	assert.False(t, HasOwnerReference(named("ReplicaSet", "apps/v1", "web"), pod))
	assert.False(t, HasOwnerReference(named("Deployment", "apps/v1", "api"), pod))
}

func named(kind, version, name string) *Unstructured {
	u := NewUnstructured(kind, version)
	u.SetName(name)
	return u
}

// ownedBy returns an object's owners, in short.
func ownedBy(o Object) (all []string) {
	for _, r := range o.GetOwnerReferences() {
		text := r.Kind + " " + r.Name + " " + string(r.UID)
		if r.Controller != nil && *r.Controller {
			text += " controls"
		}
		if r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion {
			text += " blocks"
		}
		all = append(all, text)
	}
	return all
}

func TestAControllerReferenceBlocksAndStandsBesideOtherOwnersInPlaceOfItsOwn(t *testing.T) {
	owner := &Deployment{ObjectMeta: ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}
	other := &ConfigMap{ObjectMeta: ObjectMeta{Namespace: "ns", Name: "config", UID: "2"}}
	for _, object := range []Object{&Pod{}, NewUnstructured("Host", "getambassador.io/v2")} {
		object.SetNamespace("ns")
		require.NoError(t, AddOwnerReference(owner, object))
		require.NoError(t, AddOwnerReference(other, object))
		assert.Equal(t, []string{"Deployment web 1", "ConfigMap config 2"}, ownedBy(object))
		shared := object.GetOwnerReferences()
		require.NoError(t, SetControllerReference(owner, object))
		require.NoError(t, SetControllerReference(owner, object))
		assert.Equal(t, []string{"Deployment web 1 controls blocks", "ConfigMap config 2"}, ownedBy(object))
		assert.Nil(t, shared[0].Controller, "a slice that was there is not written to")
		require.NoError(t, AddOwnerReference(owner, object))
		assert.Equal(t, []string{"Deployment web 1 controls blocks", "ConfigMap config 2"}, ownedBy(object), "it stays the controller")
		assert.True(t, RemoveOwnerReference(owner, object))
		assert.False(t, RemoveOwnerReference(owner, object))
		assert.Equal(t, []string{"ConfigMap config 2"}, ownedBy(object))
		assert.True(t, RemoveOwnerReference(other, object))
		assert.Empty(t, object.GetOwnerReferences())
	}
}

func TestAnObjectOfAnotherControllerIsLeftAsItIs(t *testing.T) {
	first := &Deployment{ObjectMeta: ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}
	again := &Deployment{ObjectMeta: ObjectMeta{Namespace: "ns", Name: "web", UID: "2"}} // new
	pod := &Pod{ObjectMeta: ObjectMeta{Namespace: "ns", Name: "p"}}
	require.NoError(t, SetControllerReference(first, pod))
	err := SetControllerReference(again, pod)
	require.ErrorIs(t, err, ErrControlled)
	assert.ErrorContains(t, err, `Deployment "web"`)
	assert.Equal(t, []string{"Deployment web 1 controls blocks"}, ownedBy(pod))
	require.NoError(t, AddOwnerReference(again, pod))
	assert.Equal(t, []string{"Deployment web 1 controls blocks", "Deployment web 2"}, ownedBy(pod))
}

func TestAnOwnerIsInTheNamespaceOfWhatItOwnsOrInNone(t *testing.T) {
	inOne := &ConfigMap{ObjectMeta: ObjectMeta{Namespace: "one", Name: "c", UID: "1"}}
	inNone := &Namespace{ObjectMeta: ObjectMeta{Name: "ns", UID: "2"}}
	for _, refer := range []func(owner, object Object, in ...SchemeOption) error{SetControllerReference, AddOwnerReference} {
		for namespace, allowed := range map[string]bool{"one": true, "two": false, "": false} {
			pod := &Pod{ObjectMeta: ObjectMeta{Namespace: namespace, Name: "p"}}
			if err := refer(inOne, pod); allowed {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, ErrOwnerScope)
				assert.Empty(t, pod.OwnerReferences)
			}
			assert.NoError(t, refer(inNone, &Pod{ObjectMeta: ObjectMeta{Namespace: namespace, Name: "p"}}))
		}
		assert.ErrorContains(t, refer(&Unstructured{Object: map[string]any{}}, &Pod{}), "without apiVersion or kind")
		assert.ErrorContains(t, refer(&Pod{}, &Pod{}), "without a name")
	}
}
