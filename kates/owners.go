package kates

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// HasOwnerReference tells whether other names owner among its owners. Owners are
// told apart by UID; where neither has one (objects that no server has seen), by
// group, kind and name.
func HasOwnerReference(owner, other Object) bool {
	reference := controllerReference(owner)
	return slices.ContainsFunc(other.GetOwnerReferences(), func(existing metav1.OwnerReference) bool {
		return sameOwner(existing, reference)
	})
}

// SetOwnerReferences makes owner the controller of objects, which it modifies:
// each gets a controller reference that blocks the owner's foreground deletion,
// in place of any that it has to another controller. References to other owners
// stay. A typed owner's empty kind is taken from client-go's scheme; an owner of
// any other Go type must carry its apiVersion and kind, or the server rejects
// the reference.
//
// Owner and object must be in the same namespace, or the owner cluster-scoped:
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
func SetOwnerReferences(owner Object, objects ...Object) {
	reference := controllerReference(owner)
	for _, obj := range objects {
		// A new slice each: the old one may be shared with a live object.
		references := make([]metav1.OwnerReference, 0, len(obj.GetOwnerReferences())+1)
		for _, existing := range obj.GetOwnerReferences() {
			controls := existing.Controller != nil && *existing.Controller
			if !controls && !sameOwner(existing, reference) {
				references = append(references, *existing.DeepCopy())
			}
		}
		obj.SetOwnerReferences(append(references, *reference.DeepCopy()))
	}
}

func controllerReference(owner Object) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, kindOf(owner))
}

// kindOf is what obj says its kind is, or what client-go's scheme knows.
func kindOf(obj Object) schema.GroupVersionKind {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind != "" && gvk.Version != "" {
		return gvk
	}
	if kinds, _, err := clientscheme.Scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
		return kinds[0]
	}
	return gvk
}

func sameOwner(a, b metav1.OwnerReference) bool {
	if a.UID != "" || b.UID != "" {
		return a.UID == b.UID
	}
	return a.Name == b.Name && a.Kind == b.Kind &&
		schema.FromAPIVersionAndKind(a.APIVersion, a.Kind).Group == schema.FromAPIVersionAndKind(b.APIVersion, b.Kind).Group
}
