package applied

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Detail is how much of an object's content is known, beside its metadata.
type Detail int

const (
	// NoContent: only metadata is known.
	NoContent Detail = iota
	// ShownContent: values may have another form than the applier gave them. The server
	// normalizes built-in kinds, and a Go type does not show what is empty.
	ShownContent
	// GivenContent: values are as they were given.
	GivenContent
)

// DetailOf returns how much of an object of a kind is known.
func (s *Set) DetailOf(kind schema.GroupVersionKind, now Object) Detail {
	switch now.(type) {
	case nil, *metav1.PartialObjectMetadata:
		return NoContent
	case *unstructured.Unstructured:
		if !s.BuiltIn(kind) {
			return GivenContent
		}
	}
	return ShownContent
}

// kept reports whether the live object still has a part that its applier owns, with its value, as
// far as is known. The managedFields do not tell. Another program may have applied another value
// under the name of the same manager. And suppose the schema of a custom kind lacks a field for a
// while. Any write to the object then drops the field, but not the record of its owner. When the
// schema has the field again, its value is lost, or is the default.
func (o *Check) kept(part any) bool {
	if o.Detail == NoContent || o.AsGiven || o.inMetadata() {
		return true
	}
	here := partAt(o.Live(), o.path)
	if o.Detail == ShownContent {
		if shown := partAt(o.shown(), o.path); shown != nil {
			part = shown
		}
		if zero(part) {
			return here == nil || zero(here) || !explicit(o.Type, o.path, part)
		}
		here, part = withoutAdmitted(o.path, here, part), said(o.Type, o.path, part)
	}
	return contains(here, part)
}

// withoutAdmitted leaves out the tolerations that the admission of each Pod adds behind those that
// were applied. The list is owned as a whole.
// See https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#defaulttolerationseconds
func withoutAdmitted(path fieldpath.Path, here, part any) any {
	there, _ := here.([]any)
	applied, _ := part.([]any)
	if path.String() != ".spec.tolerations" || len(there) <= len(applied) {
		return here
	}
	return there[:len(applied)]
}

func (o *Check) shown() map[string]any {
	if o.Shown == nil {
		return nil
	}
	return o.Shown()
}

// keepsMetadata reports whether the live object has the labels, annotations and owners that are
// applied. The rest of the metadata has no values beside its keys.
func (o *Check) keepsMetadata(applied map[string]any) bool {
	if o.Now == nil {
		return true
	}
	for field, live := range map[string]map[string]string{"labels": o.Now.GetLabels(), "annotations": o.Now.GetAnnotations()} {
		values, _ := applied[field].(map[string]any)
		for name, value := range values {
			if live[name] != value {
				return false
			}
		}
	}
	live := o.Now.GetOwnerReferences()
	return !slices.ContainsFunc(o.Owners, func(want metav1.OwnerReference) bool {
		return !slices.ContainsFunc(live, func(r metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(r, want) })
	})
}

func (o *Check) inMetadata() bool {
	return len(o.path) > 0 && o.path[0].FieldName != nil && *o.path[0].FieldName == "metadata"
}

// zero reports whether a part of an object is empty. Where empty means absent, it is not kept.
func zero(part any) bool {
	switch part := part.(type) {
	case map[string]any:
		return saysNothing(part)
	case []any:
		return len(part) == 0
	case nil, bool, string, int64, float64:
		return part == nil || part == false || part == "" || part == int64(0) || part == float64(0)
	}
	return false
}

// contains reports whether a value has all that a part has. The server may have added defaults. A
// null and an empty object may be kept or not.
func contains(here, part any) bool {
	switch part := part.(type) {
	case nil:
		return true
	case map[string]any:
		there, ok := here.(map[string]any)
		for name, inner := range part {
			if !contains(there[name], inner) {
				return false
			}
		}
		return ok || len(part) == 0
	case []any:
		there, _ := here.([]any)
		if len(there) != len(part) {
			return false
		}
		for i := range part {
			if !contains(there[i], part[i]) {
				return false
			}
		}
		return true
	}
	return sameScalar(here, part)
}
