package kates

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// AnyOf returns a [Query.Signal] for changes that one of several is for:
//
//	Signal: kates.AnyOf(kates.GenerationChanged, kates.LabelsChanged)
func AnyOf(signals ...func(old, current Object) bool) func(old, current Object) bool {
	return func(old, current Object) bool {
		return slices.ContainsFunc(signals, func(f func(old, current Object) bool) bool { return f(old, current) })
	}
}
