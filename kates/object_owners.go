package kates

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/owners"
)

// Errors of owner references, for errors.Is.
var (
	// ErrControlled: the object has another controller, and an object has at most one.
	ErrControlled = owners.ErrControlled
	// ErrOwnerScope: a namespaced owner owns objects of its own namespace only. The garbage
	// collector would take others for orphans.
	ErrOwnerScope = owners.ErrOwnerScope
)

// SetControllerReference makes owner the controller of an object, which it modifies. The object
// gets a reference to owner that blocks the owner's foreground deletion. It replaces any other
// reference to the same owner; references to other owners stay. An object that another owner
// controls is [ErrControlled]. One that is not in the namespace of its owner is [ErrOwnerScope],
// and so is a cluster-scoped object of a namespaced owner. On an error the object is not
// modified.
//
// The owner's kind is taken from the owner, or from client-go's scheme. A real server needs its
// UID. Where the server enforces it, blocking needs the right to update the owner's finalizers.
// See https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/ and
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/
func SetControllerReference(owner, object Object) error { return owners.SetController(owner, object) }

// AddOwnerReference makes owner one of the owners of an object, which it modifies. The object is
// garbage when all of its owners are gone. The reference does not make owner a controller and
// blocks nothing; if owner is the controller already, it stays so. Errors are those of
// [SetControllerReference] except [ErrControlled]: it does not matter who controls the object.
func AddOwnerReference(owner, object Object) error { return owners.Add(owner, object) }

// RemoveOwnerReference takes owner from the owners of an object, which it modifies, and reports
// whether it was one.
func RemoveOwnerReference(owner, object Object) bool { return owners.Remove(owner, object) }

// HasOwnerReference reports whether other names owner among its owners. Owners are compared by
// UID, or by group, kind and name if neither has one (objects that no server has seen).
func HasOwnerReference(owner, other Object) bool { return owners.Has(owner, other) }

// SetOwnerReferences makes owner the controller of objects, which it modifies. Each gets a
// controller reference that blocks the owner's foreground deletion, in place of any that it has
// to another controller. References to other owners stay. The empty kind of a typed owner is
// taken from client-go's scheme. An owner of any other Go type must carry its apiVersion and
// kind, or the server rejects the reference.
//
// Owner and object must be in the same namespace, or the owner cluster-scoped:
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
func SetOwnerReferences(owner Object, objects ...Object) {
	for _, object := range objects {
		owners.Replace(owner, object)
	}
}

// kindOf returns the kind that obj carries, or else the one that the client's scheme knows.
func (c *Client) kindOf(obj Object) schema.GroupVersionKind {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		if kinds, _, err := c.core.scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
			return kinds[0]
		}
	}
	return gvk
}
