package compile

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/applied"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// Ours are functions of package kates that users pass as they are. A query knows them by their
// code, as it knows what this package makes.
type Ours struct {
	// Keys are functions Key that need nothing but which object it is.
	Keys []func(objects.Object) []string
	// Signals answer a question with [Needs].
	Signals []func(old, current objects.Object) bool
	// DropsManagedFields is a function Transform.
	DropsManagedFields func(objects.Object) error
}

// made are the functions Key that this package makes and that need more than which object it is.
// What makes them is not inlined, so each is known by its code: see [SameCode].
var made = []func(objects.Object) []string{
	ByLabel(""), ByAnnotation(""), ByRemoteOwner(""), byOwner("", nil), ByField(""),
	keyOfController(&meta.RESTMapping{Scope: meta.RESTScopeRoot}),
}

// makesKey reports whether this library has made a function Key. reads: the function reads other
// fields than namespace, name and UID, and tells which when it is asked: see [Needs].
func (o *Ours) makesKey(f func(objects.Object) []string) (ours, reads bool) {
	same := func(known func(objects.Object) []string) bool { return SameCode(f, known) }
	if f == nil {
		return false, false
	}
	reads = slices.ContainsFunc(made, same)
	return reads || SameCode(f, ByNamespacedName) || slices.ContainsFunc(o.Keys, same), reads
}

// keyOfMetadata reports whether this library has made a Key, which reads metadata alone.
func (o *Ours) keyOfMetadata(f func(objects.Object) []string) bool {
	ours, reads := o.makesKey(f)
	if !reads {
		return ours
	}
	var q question
	f(&q)
	_, ok := besideOf(q.needs)
	return ok
}

func (o *Ours) knowsSignal(f func(old, current objects.Object) bool) bool {
	return SameCode(f, AnySignal(nil)) ||
		slices.ContainsFunc(o.Signals, func(known func(old, current objects.Object) bool) bool { return SameCode(f, known) })
}

// The metadata that functions of this library read.
var (
	LabelsPath      = project.Path{"metadata", "labels"}
	AnnotationsPath = project.Path{"metadata", "annotations"}
	GenerationPath  = project.Path{"metadata", "generation"}
	ownersPath      = project.Path{"metadata", "ownerReferences"}
)

// ByNamespacedName is the key of a controller's root.
func ByNamespacedName(o objects.Object) []string {
	return OneKey(objects.Path(o.GetNamespace(), o.GetName()))
}

// ByOwner gives the key of an object's controller: its namespace and name.
func ByOwner(kind string) func(objects.Object) []string {
	return byOwner(kind, func(o objects.Object, owner *metav1.OwnerReference) string {
		return objects.Path(o.GetNamespace(), owner.Name)
	})
}

// ByOwnerName gives the name of an object's controller.
func ByOwnerName(kind string) func(objects.Object) []string {
	return byOwner(kind, func(_ objects.Object, owner *metav1.OwnerReference) string { return owner.Name })
}

// ByOwnerUID gives the UID of an object's controller.
func ByOwnerUID(kind string) func(objects.Object) []string {
	return byOwner(kind, func(_ objects.Object, owner *metav1.OwnerReference) string { return string(owner.UID) })
}

//go:noinline
func byOwner(kind string, key func(objects.Object, *metav1.OwnerReference) string) func(objects.Object) []string {
	wanted := schema.ParseGroupKind(kind)
	return func(o objects.Object) []string {
		if Needs(o, ownersPath) {
			return nil
		}
		owner := metav1.GetControllerOfNoCopy(o)
		if owner == nil || !isKind(wanted, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()) {
			return nil
		}
		return OneKey(key(o, owner))
	}
}

// ByRemoteOwner gives the key of an owner in another cluster.
//
//go:noinline
func ByRemoteOwner(kind string) func(objects.Object) []string {
	wanted := schema.ParseGroupKind(kind)
	return func(o objects.Object) []string {
		if Needs(o, LabelsPath, AnnotationsPath) {
			return nil
		}
		owner, key, ok := applied.RemoteOwner(o)
		if !ok || !isKind(wanted, owner) {
			return nil
		}
		return OneKey(key)
	}
}

// isKind reports whether a kind is the wanted one, of which the kind and the group may be empty.
func isKind(wanted, kind schema.GroupKind) bool {
	return (wanted.Kind == "" || strings.EqualFold(kind.Kind, wanted.Kind)) &&
		(wanted.Group == "" || strings.EqualFold(kind.Group, wanted.Group))
}

// keyOfController returns the key function of what a root of this kind controls: it gives the
// root's key.
//
//go:noinline
func keyOfController(root *meta.RESTMapping) func(objects.Object) []string {
	kind, namespaced := root.GroupVersionKind.GroupKind(), root.Scope.Name() == meta.RESTScopeNameNamespace
	return func(o objects.Object) []string {
		if Needs(o, ownersPath) {
			return nil
		}
		owner := metav1.GetControllerOfNoCopy(o)
		if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind {
			return nil
		}
		if namespaced {
			return OneKey(objects.Path(o.GetNamespace(), owner.Name))
		}
		return OneKey(owner.Name)
	}
}

// ByLabel gives the value of a label.
//
//go:noinline
func ByLabel(name string) func(objects.Object) []string {
	return func(o objects.Object) []string {
		if Needs(o, LabelsPath) {
			return nil
		}
		return OneKey(o.GetLabels()[name])
	}
}

// ByAnnotation gives the value of an annotation.
//
//go:noinline
func ByAnnotation(name string) func(objects.Object) []string {
	return func(o objects.Object) []string {
		if Needs(o, AnnotationsPath) {
			return nil
		}
		return OneKey(o.GetAnnotations()[name])
	}
}

// ByField gives the values of a field.
//
//go:noinline
func ByField(path string) func(objects.Object) []string {
	names := jsonform.SplitPath(path)
	return func(o objects.Object) []string {
		if Needs(o, names) {
			return nil
		}
		if names == nil {
			panic(fmt.Errorf("key by field %q: not a path", path))
		}
		keys, err := jsonform.FieldValues(o, names)
		if err != nil {
			panic(fmt.Errorf("key by field %q: %w", path, err))
		}
		return keys
	}
}

// OneKey returns one key, or none if it is empty.
func OneKey(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}
