package kates

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator/query"
)

// DropManagedFields is a [Query.Transform] that drops metadata.managedFields. They say who owns
// which field, are often half of an object, and few programs need them.
func DropManagedFields(o Object) error {
	o.SetManagedFields(nil)
	return nil
}

// DropFields returns a [Query.Transform] that drops fields, each given by its path:
//
//	kates.DropFields("data", "spec.template", `metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`)
//
// A backslash makes a dot part of a name. A missing field is no error. Paths do not lead into
// lists. Each call returns another function: keep it in a variable, because queries that share a
// watch need the same one. An empty path, or one with an empty name in it, is an error for every
// object.
func DropFields(paths ...string) func(Object) error {
	split := make([][]string, len(paths))
	var bad error
	for i, path := range paths {
		if split[i] = splitPath(path); split[i] == nil {
			bad = errors.Join(bad, fmt.Errorf("drop field %q: not a path", path))
		}
	}
	return func(o Object) error {
		if bad != nil {
			return bad
		}
		if u, ok := o.(*Unstructured); ok {
			dropFields(u.Object, split)
			return nil
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil || !dropFields(content, split) {
			return err
		}
		fresh := reflect.New(reflect.TypeOf(o).Elem())
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, fresh.Interface()); err != nil {
			return err
		}
		reflect.ValueOf(o).Elem().Set(fresh.Elem())
		return nil
	}
}

// dropFields reports whether any of the fields was there.
func dropFields(content map[string]any, paths [][]string) (dropped bool) {
	for _, path := range paths {
		_, there, _ := unstructured.NestedFieldNoCopy(content, path...)
		unstructured.RemoveNestedField(content, path...)
		dropped = dropped || there
	}
	return dropped
}

// splitPath returns the names of a path, nil if one is empty.
func splitPath(path string) (names []string) {
	const dot = "\x00" // no field has it in its name
	for name := range strings.SplitSeq(strings.ReplaceAll(path, `\.`, dot), ".") {
		if name == "" {
			return nil
		}
		names = append(names, strings.ReplaceAll(name, dot, "."))
	}
	return names
}

// Transforms returns a [Query.Transform] that runs several in order, up to the first error. Each
// call returns another function: keep it in a variable, because queries that share a watch need
// the same one.
func Transforms(all ...func(Object) error) func(Object) error {
	if slices.ContainsFunc(all, func(f func(Object) error) bool { return f == nil || sameCode(f, noTransform) }) {
		return noTransform
	}
	return func(o Object) error {
		for _, f := range all {
			if err := f(o); err != nil {
				return err
			}
		}
		return nil
	}
}

// GenerationChanged is a [Query.Signal] for programs that look at what users want (the spec), and
// not at what controllers make of it: an update of an object's status, labels or annotations
// alone is not worth a signal. Objects of kinds without a generation, such as ConfigMaps, always
// are; so are those that come, go, or start to be deleted.
// See https://kubernetes.io/docs/concepts/overview/working-with-objects/#object-spec-and-status
func GenerationChanged(old, current Object) bool {
	return old == nil || current == nil || current.GetGeneration() == 0 ||
		old.GetGeneration() != current.GetGeneration() ||
		(old.GetDeletionTimestamp() == nil) != (current.GetDeletionTimestamp() == nil)
}

// LabelsChanged is a [Query.Signal] for changes of labels, and objects that come or go.
func LabelsChanged(old, current Object) bool {
	return old == nil || current == nil || !maps.Equal(old.GetLabels(), current.GetLabels())
}

// AnnotationsChanged is a [Query.Signal] for changes of annotations, and objects that come or go.
func AnnotationsChanged(old, current Object) bool {
	return old == nil || current == nil || !maps.Equal(old.GetAnnotations(), current.GetAnnotations())
}

// AnySignal returns a [Query.Signal] for changes that one of several is for:
//
//	Signal: kates.AnySignal(kates.GenerationChanged, kates.LabelsChanged)
func AnySignal(signals ...func(old, current Object) bool) func(old, current Object) bool {
	if slices.ContainsFunc(signals, func(f func(old, current Object) bool) bool { return f == nil || sameCode(f, noSignal) }) {
		return noSignal
	}
	return func(old, current Object) bool {
		return slices.ContainsFunc(signals, func(f func(old, current Object) bool) bool { return f(old, current) })
	}
}

// EveryPartition is the result of a [Query.Key] for an object that belongs to every partition,
// like the objects of a query without a Key. It differs from any key that an object could give. A
// change of such an object is a change of each partition. It takes time for every partition, and
// memory until the partition has had its turn. Use a [Lookup] for what changes often and matters
// to few.
const EveryPartition = query.EveryPartition

// ByNamespace is a [Query.Key]: the object's namespace. Objects of kinds without a namespace
// belong to no partition.
func ByNamespace(o Object) []string { return keyOf(o.GetNamespace()) }

// ByName is a [Query.Key]: the object's name, whatever its namespace. A [Namespace] object
// has the same key as the objects in it have by [ByNamespace].
func ByName(o Object) []string { return keyOf(o.GetName()) }

// ByNamespacedName is a [Query.Key]: "namespace/name", or the name of an object of a kind without
// a namespace. The objects that it controls have the same key by [ByOwner].
func ByNamespacedName(o Object) []string { return keyOf(join(o.GetNamespace(), o.GetName())) }

// ByUID is a [Query.Key]: the object's UID. The objects that it controls have the same key by
// [ByOwnerUID].
func ByUID(o Object) []string { return keyOf(string(o.GetUID())) }

// ByOwner returns a [Query.Key]: "namespace/name" of the object's controller, which is the owner
// whose reference says so. For an object of a kind without a namespace it is the controller's
// name. The argument is the kind of the controller: Kind or Kind.group (Deployment,
// Deployment.apps), in any letter case, or empty for any kind. Objects without such a controller
// belong to no partition.
//
// The reference does not say whether the owner has a namespace. For owners without one see
// [ByOwnerName]. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
func ByOwner(kind string) func(Object) []string {
	return byOwner(kind, func(o Object, owner *metav1.OwnerReference) string { return join(o.GetNamespace(), owner.Name) })
}

// ByOwnerName is [ByOwner] with the controller's name alone: the key that a controller without a
// namespace has by [ByName].
func ByOwnerName(kind string) func(Object) []string {
	return byOwner(kind, func(_ Object, owner *metav1.OwnerReference) string { return owner.Name })
}

// ByOwnerUID is [ByOwner] with the controller's UID: the key that the controller has by [ByUID].
func ByOwnerUID(kind string) func(Object) []string {
	return byOwner(kind, func(_ Object, owner *metav1.OwnerReference) string { return string(owner.UID) })
}

func byOwner(kind string, key func(Object, *metav1.OwnerReference) string) func(Object) []string {
	wanted := schema.ParseGroupKind(kind)
	return func(o Object) []string {
		owner := metav1.GetControllerOfNoCopy(o)
		if owner == nil || wanted.Kind != "" && !strings.EqualFold(owner.Kind, wanted.Kind) {
			return nil
		}
		group := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group
		if wanted.Group != "" && !strings.EqualFold(group, wanted.Group) {
			return nil
		}
		return keyOf(key(o, owner))
	}
}

// ByLabel returns a [Query.Key]: the value of a label. Objects without it, or with an empty
// value, belong to no partition.
func ByLabel(name string) func(Object) []string {
	return func(o Object) []string { return keyOf(o.GetLabels()[name]) }
}

// ByAnnotation returns a [Query.Key]: the value of an annotation. Objects without it, or with an
// empty value, belong to no partition.
func ByAnnotation(name string) func(Object) []string {
	return func(o Object) []string { return keyOf(o.GetAnnotations()[name]) }
}

// ByField returns a [Query.Key]: the value of a field. The path is that of the object's JSON. A
// backslash makes a dot part of a name:
//
//	kates.ByField("spec.nodeName")
//	kates.ByField("spec.parentRefs.name") // one key for each element of a list
//
// Numbers and booleans are keys as JSON writes them. A value that is missing, null, empty, or a
// map gives no key. An object that is watched as metadata alone has only its metadata fields. A
// typed object is converted to an untyped one, once per version: a function of your own is
// faster. A path that is empty, or has an empty name in it, makes every object of the query
// [Invalid].
func ByField(path string) func(Object) []string {
	names := splitPath(path)
	return func(o Object) []string {
		if names == nil {
			panic(fmt.Errorf("key by field %q: not a path", path))
		}
		if u, ok := o.(*Unstructured); ok {
			return fieldKeys(nil, u.Object, names)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			panic(fmt.Errorf("key by field %q: %w", path, err))
		}
		return fieldKeys(nil, content, names)
	}
}

// fieldKeys adds the values at a path, those of each element of a list included.
func fieldKeys(keys []string, value any, path []string) []string {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			keys = fieldKeys(keys, element, path)
		}
	case map[string]any:
		if len(path) > 0 {
			keys = fieldKeys(keys, v[path[0]], path[1:])
		}
	case nil:
	default:
		if len(path) == 0 {
			keys = append(keys, keyOf(fmt.Sprint(v))...)
		}
	}
	return keys
}

// keyOf returns one key, or none if it is empty.
func keyOf(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}

func join(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
