package applied

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/object"
)

// Names of the marks of an owner that lives in another cluster. An owner reference would have the
// garbage collector of this cluster delete the object.
const (
	OwnerLabel      = "kates.io/owner-uid" // the value is the owner's UID
	OwnerAnnotation = "kates.io/owner"     // "Kind.group namespace/name"
)

// OwnerText is the value of the annotation for an owner.
func OwnerText(owner Object) string {
	return owners.KindOf(owner).GroupKind().String() + " " + object.Path(owner.GetNamespace(), owner.GetName())
}

// RemoteOwner returns the kind and the key of the owner in another cluster that an object has, if
// it has one.
func RemoteOwner(o Object) (kind schema.GroupKind, key string, ok bool) {
	if o.GetLabels()[OwnerLabel] == "" {
		return kind, "", false
	}
	text, key, ok := strings.Cut(o.GetAnnotations()[OwnerAnnotation], " ")
	return schema.ParseGroupKind(text), key, ok && key != ""
}

// has reports whether an object belongs to the set's owner.
func (s *Set) has(o Object) bool {
	if s.Remote {
		return o.GetLabels()[OwnerLabel] == string(s.Owner.GetUID())
	}
	return owners.Has(s.Owner, o)
}

// controlledElsewhere returns an error if an owner in another cluster has the object, which is not
// that of the set.
func (s *Set) controlledElsewhere(live Object) error {
	if uid := live.GetLabels()[OwnerLabel]; uid == "" || s.has(live) {
		return nil
	}
	return fmt.Errorf("%w, in another cluster: %s", owners.ErrControlled, live.GetAnnotations()[OwnerAnnotation])
}
