package kates

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
