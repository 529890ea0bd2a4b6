package kates

import "github.com/kates-go/kates/internal/client/compile"

// A Transform changes each version of an object before anybody holds it: see [Query].
// [TransformOf] makes one of a function. The zero value is none. Values compare: one value is one
// function.
type Transform struct{ f *compile.Transform }

// TransformOf returns a [Query.Transform] of a function that changes a T: a pointer to the kind's
// Go type, *[Unstructured], map[string]any, or metav1.Object. If the watch holds another type, the
// object is converted to a T and back.
//
//	var slim = kates.TransformOf(func(s *corev1.Secret) error {
//	    s.Data = nil
//	    return nil
//	})
//
// Each call returns another Transform. Keep it in a variable: queries that share a watch need the
// same one. An object that does not decode as a T is left out as [Invalid]. An API type of another
// kind than the field's is an error of Watch.
func TransformOf[T any](f func(T) error) Transform { return Transform{compile.TransformOf(f)} }

// Apply changes an object of any Go type, as a watch would. The zero Transform changes nothing. An
// error says that the Transform was made of nothing, what the function returned, or that it
// panicked. A watch refuses the first, and leaves the object out as [Invalid] for the others.
func (t Transform) Apply(o Object) error { return t.f.Apply(o) }

// IsZero reports whether it is none.
func (t Transform) IsZero() bool { return t.f == nil }

// DropManagedFields is a [Query.Transform] that drops metadata.managedFields. They say who owns
// which field, are often half of an object, and few programs need them.
var DropManagedFields = Transform{compile.DropManagedFields()}

// DropFields returns a [Query.Transform] that drops fields, each given by its path:
//
//	kates.DropFields("data", "spec.template", `metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`)
//
// A backslash makes a dot part of a name. A missing field is no error. Paths do not lead into
// lists. Each call returns another Transform: keep it in a variable, because queries that share a
// watch need the same one. An empty path, or one with an empty name in it, is an error of Watch.
func DropFields(paths ...string) Transform { return Transform{compile.DropFields(paths)} }

// Transforms returns a [Query.Transform] that runs several in order, up to the first error. Zero
// ones change nothing. Each call returns another Transform: keep it in a variable, because queries
// that share a watch need the same one.
func Transforms(all ...Transform) Transform {
	made := make([]*compile.Transform, len(all))
	for i, t := range all {
		made[i] = t.f
	}
	return Transform{compile.Transforms(made)}
}
