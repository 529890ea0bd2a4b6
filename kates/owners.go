package kates

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Errors of owner references, for errors.Is.
var (
	// ErrControlled: the object has another controller, and an object has one at most.
	ErrControlled = errors.New("it is controlled by another owner")
	// ErrOwnerScope: a namespaced owner owns objects of its own namespace only; the garbage collector would take
	// others for orphans.
	ErrOwnerScope = errors.New("its owner is in another namespace")
)

// SetControllerReference makes owner the controller of an object, which it modifies: the object gets a reference
// to it that blocks the owner's foreground deletion, in place of any other reference to the same owner. References
// to other owners stay. An object that another owner controls is [ErrControlled], one that is not in the namespace
// of its owner (a cluster-scoped object of a namespaced owner included) is [ErrOwnerScope]; it is not modified
// then.
//
// The owner's kind is taken from the owner, or from client-go's scheme; its UID is needed by a real server.
// Blocking needs the right to update the finalizers of the owner, where the server enforces that. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/ and
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/
func SetControllerReference(owner, object Object) error {
	reference, err := referenceTo(owner, object)
	if err != nil {
		return err
	}
	yes := true
	reference.Controller, reference.BlockOwnerDeletion = &yes, &yes
	if other := metav1.GetControllerOfNoCopy(object); other != nil && !sameOwner(*other, reference) {
		return fmt.Errorf("own %s %q: %w: %s %q", object.GetNamespace(), object.GetName(), ErrControlled, other.Kind, other.Name)
	}
	putReference(object, reference)
	return nil
}

// AddOwnerReference makes owner one of the owners of an object, which it modifies: the object is garbage when all
// of its owners are gone. It is no controller thereby, and blocks nothing; if it is the controller already, it
// stays so. Errors are those of [SetControllerReference], but for [ErrControlled]: who controls the object does
// not matter.
func AddOwnerReference(owner, object Object) error {
	reference, err := referenceTo(owner, object)
	if err != nil {
		return err
	}
	for _, existing := range object.GetOwnerReferences() {
		if sameOwner(existing, reference) {
			reference.Controller, reference.BlockOwnerDeletion = existing.Controller, existing.BlockOwnerDeletion
		}
	}
	putReference(object, reference)
	return nil
}

// RemoveOwnerReference takes owner from the owners of an object, which it modifies, and reports whether it was one.
func RemoveOwnerReference(owner, object Object) bool {
	reference := controllerReference(owner)
	var kept []metav1.OwnerReference // a new slice: the old one may be shared with a live object
	for _, existing := range object.GetOwnerReferences() {
		if !sameOwner(existing, reference) {
			kept = append(kept, *existing.DeepCopy())
		}
	}
	if len(kept) == len(object.GetOwnerReferences()) {
		return false
	}
	object.SetOwnerReferences(kept)
	return true
}

// referenceTo is a plain reference, if the object may have it.
func referenceTo(owner, object Object) (metav1.OwnerReference, error) {
	gvk := kindOf(owner)
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return metav1.OwnerReference{}, fmt.Errorf("an owner without apiVersion or kind: %T %q", owner, owner.GetName())
	case owner.GetName() == "":
		return metav1.OwnerReference{}, fmt.Errorf("an owner without a name: a %s", gvk.Kind)
	case owner.GetNamespace() != "" && owner.GetNamespace() != object.GetNamespace():
		return metav1.OwnerReference{}, fmt.Errorf("own %q in %q: %w: %s %q is in %q",
			object.GetName(), object.GetNamespace(), ErrOwnerScope, gvk.Kind, owner.GetName(), owner.GetNamespace())
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}, nil
}

// putReference puts a reference in place of one to the same owner, or at the end.
func putReference(object Object, reference metav1.OwnerReference) {
	put := false
	references := make([]metav1.OwnerReference, 0, len(object.GetOwnerReferences())+1)
	for _, existing := range object.GetOwnerReferences() {
		switch {
		case !sameOwner(existing, reference):
			references = append(references, *existing.DeepCopy())
		case !put:
			references, put = append(references, *reference.DeepCopy()), true
		}
	}
	if !put {
		references = append(references, *reference.DeepCopy())
	}
	object.SetOwnerReferences(references)
}

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

// kindOf is what obj says its kind is, or what the client's scheme knows.
func (c *Client) kindOf(obj Object) schema.GroupVersionKind {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		if kinds, _, err := c.core.scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
			return kinds[0]
		}
	}
	return gvk
}
