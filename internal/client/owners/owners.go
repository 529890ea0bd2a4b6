// Package owners reads and changes the owner references of objects. It knows no client.
package owners

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/kates-go/kates/internal/base/jsonform"
)

// Object is an API object of any Go type.
type Object = jsonform.Object

// Errors of owner references. Package kates exports them.
var (
	ErrControlled = errors.New("it is controlled by another owner")
	ErrOwnerScope = errors.New("its owner is in another namespace")
)

// SetController makes owner the controller of an object, as kates.SetControllerReference
// documents.
func SetController(owner, object Object) error {
	reference, err := referenceTo(owner, object)
	if err != nil {
		return err
	}
	reference.Controller, reference.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
	if other := metav1.GetControllerOfNoCopy(object); other != nil && !Same(*other, reference) {
		return fmt.Errorf("own %s %q: %w: %s %q",
			object.GetNamespace(), object.GetName(), ErrControlled, other.Kind, other.Name)
	}
	Put(object, reference)
	return nil
}

// Add makes owner one of the owners of an object, as kates.AddOwnerReference documents.
func Add(owner, object Object) error {
	reference, err := referenceTo(owner, object)
	if err != nil {
		return err
	}
	for _, existing := range object.GetOwnerReferences() {
		if Same(existing, reference) {
			reference.Controller, reference.BlockOwnerDeletion = existing.Controller, existing.BlockOwnerDeletion
		}
	}
	Put(object, reference)
	return nil
}

// Remove takes owner from the owners of an object and reports whether it was one.
func Remove(owner, object Object) bool {
	kept := without(object, to(owner))
	if len(kept) == len(object.GetOwnerReferences()) {
		return false
	}
	object.SetOwnerReferences(kept)
	return true
}

// Has reports whether an object names owner among its owners.
func Has(owner, object Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), to(owner))
}

// HasOthers reports whether an object names owners other than this one.
func HasOthers(owner, object Object) bool { return len(without(object, to(owner))) > 0 }

// Replace makes owner the only controller of an object, in place of any other.
func Replace(owner, object Object) {
	same := to(owner)
	others := without(object, func(existing metav1.OwnerReference) bool {
		return same(existing) || ptr.Deref(existing.Controller, false)
	})
	object.SetOwnerReferences(append(others, ControllerReference(owner)))
}

// Put puts a reference in place of one to the same owner, or at the end.
func Put(object Object, reference metav1.OwnerReference) {
	same := func(existing metav1.OwnerReference) bool { return Same(existing, reference) }
	others, at := without(object, same), slices.IndexFunc(object.GetOwnerReferences(), same)
	if at < 0 {
		at = len(others)
	}
	object.SetOwnerReferences(slices.Insert(others, at, *reference.DeepCopy()))
}

// without returns an object's references except some, nil if there are no others. It copies them:
// a live object may share its own.
func without(object Object, drop func(metav1.OwnerReference) bool) (kept []metav1.OwnerReference) {
	for _, existing := range object.GetOwnerReferences() {
		if !drop(existing) {
			kept = append(kept, *existing.DeepCopy())
		}
	}
	return kept
}

// to returns whether a reference is to this owner.
func to(owner Object) func(metav1.OwnerReference) bool {
	reference := ControllerReference(owner)
	return func(existing metav1.OwnerReference) bool { return Same(existing, reference) }
}

// referenceTo returns a plain reference, if the object may have it.
func referenceTo(owner, object Object) (metav1.OwnerReference, error) {
	gvk := KindOf(owner)
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return metav1.OwnerReference{}, fmt.Errorf("an owner without apiVersion or kind: %T %q (if its type is in a scheme of your own, pass kates.InScheme)", owner, owner.GetName())
	case owner.GetName() == "":
		return metav1.OwnerReference{}, fmt.Errorf("an owner without a name: a %s", gvk.Kind)
	case owner.GetNamespace() != "" && owner.GetNamespace() != object.GetNamespace():
		return metav1.OwnerReference{}, fmt.Errorf("own %q in %q: %w: %s %q is in %q",
			object.GetName(), object.GetNamespace(), ErrOwnerScope, gvk.Kind, owner.GetName(), owner.GetNamespace())
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}, nil
}

// ControllerReference returns a controller reference to owner, a new one on each call.
func ControllerReference(owner Object) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, KindOf(owner))
}

// KindOf returns the kind that an object carries, or else the one that client-go's scheme knows.
func KindOf(object Object) schema.GroupVersionKind {
	gvk := object.GetObjectKind().GroupVersionKind()
	if gvk.Kind != "" && gvk.Version != "" {
		return gvk
	}
	if kinds, _, err := clientscheme.Scheme.ObjectKinds(object); err == nil && len(kinds) > 0 {
		return kinds[0]
	}
	return gvk
}

// In returns owner with the kind that a scheme knows for its Go type, where it carries none.
func In(scheme *runtime.Scheme, owner Object) Object {
	if gvk := owner.GetObjectKind().GroupVersionKind(); gvk.Kind != "" && gvk.Version != "" {
		return owner
	}
	kinds, _, err := scheme.ObjectKinds(owner)
	if err != nil || len(kinds) == 0 {
		return owner
	}
	k := &kinded{Object: owner}
	k.kind.SetGroupVersionKind(kinds[0])
	return k
}

// kinded is an object with a kind that it does not carry.
type kinded struct {
	Object
	kind metav1.TypeMeta
}

// GetObjectKind implements [runtime.Object].
func (k *kinded) GetObjectKind() schema.ObjectKind { return &k.kind }

// Same reports whether two references name the same owner: by UID, or by group, kind and name if
// neither has one.
func Same(a, b metav1.OwnerReference) bool {
	if a.UID != "" || b.UID != "" {
		return a.UID == b.UID
	}
	return a.Name == b.Name && a.Kind == b.Kind &&
		schema.FromAPIVersionAndKind(a.APIVersion, a.Kind).Group == schema.FromAPIVersionAndKind(b.APIVersion, b.Kind).Group
}
