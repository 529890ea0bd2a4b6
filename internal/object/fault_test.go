package object

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWhatIsLeftOutIsShownAsFarAsItIsKnown: whole, or its metadata, or its identity.
func TestWhatIsLeftOutIsShownAsFarAsItIsKnown(t *testing.T) {
	id := ID{"v1", "ConfigMap", "ns", "a", "u", "7"}
	bad := errors.New("bad")
	whole := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"},
		"metadata": map[string]any{"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "7", "labels": map[string]any{"l": "x"}},
	}}
	metadata := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"l": "x"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
	}
	identity := func(u *unstructured.Unstructured) []string {
		return []string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), string(u.GetUID()), u.GetResourceVersion()}
	}
	want := []string{"v1", "ConfigMap", "ns", "a", "u", "7"}
	bare := LeftOut(Reject(id, nil, Original{}, bad))
	assert.Equal(t, want, identity(bare))
	assert.Empty(t, bare.GetLabels())

	known := LeftOut(Reject(id, metadata, Original{}, bad))
	assert.Equal(t, want, identity(known))
	assert.Equal(t, map[string]string{"l": "x"}, known.GetLabels())
	assert.Empty(t, known.GetManagedFields(), "they are not held")

	o := Reject(id, metadata, OriginalOf(whole), bad)
	assert.Equal(t, whole, LeftOut(o))
	assert.Equal(t, want, identity(LeftOut(Stamp(o, "other", "9"))))
	assert.Equal(t, known, LeftOut(WithoutOriginal(o)))
	assert.Zero(t, FaultOriginal(WithoutOriginal(o)).Bytes())
}

// TestAnObjectOnItsWayKeepsItsOriginal: also where it is copied for somebody who may write to it.
func TestAnObjectOnItsWayKeepsItsOriginal(t *testing.T) {
	whole := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"}}}
	short := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	o := &Received{short, OriginalOf(whole)}
	assert.Same(t, short, Bare(o))
	copied := o.DeepCopyObject().(Object)
	assert.NotSame(t, short, Bare(copied))
	assert.Equal(t, whole, OriginalOf(copied).Object())
}

func TestOneVersionWithAnotherContentIsAnotherInvalidObject(t *testing.T) {
	of := func(value string, sent bool) Object {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "data": value}}
		original := OriginalOf(u)
		if sent {
			original = OriginalIn("json", []byte(`{ "data": "`+value+`" }`), originalInJSON)
		}
		return Reject(ID{Name: "a"}, nil, original, errors.New("bad"))
	}
	assert.True(t, Alike(of("x", false), of("x", false)))
	assert.True(t, Alike(of("x", false), of("x", true)), "the version decides where one is the answer to an own write")
	assert.False(t, Alike(of("x", false), of("y", false)))
	assert.False(t, Alike(of("x", true), of("y", true)))
	assert.False(t, Alike(of("x", false), WithoutOriginal(of("x", false))))
	assert.True(t, SameUnversioned(of("x", false), of("x", true)))
	assert.False(t, SameUnversioned(of("x", false), of("y", false)))
}
