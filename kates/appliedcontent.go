package kates

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator"
)

// detail is how much of an object's content is known, beside its metadata.
type detail int

const (
	noContent detail = iota
	// shownContent is content whose values may have another form than they were given in: the server's own of built-in kinds, or
	// that of a Go type, which does not show what is empty.
	shownContent
	// givenContent is content as it was given.
	givenContent
)

// detailOf is how much is known of an object of a kind.
func detailOf(kind schema.GroupVersionKind, now accumulator.Object) detail {
	switch now.(type) {
	case nil, *metav1.PartialObjectMetadata:
		return noContent
	case *Unstructured:
		if !builtIn(kind) {
			return givenContent
		}
	}
	return shownContent
}

// kept reports whether the live object has a part, which its applier owns, as far as that is known. The managedFields of a custom
// kind do not tell: who writes to an object, its status say, while the schema does not have one of its fields, drops the field, but
// not the record of its owner. When the schema has it again, it is lost, or has become the default.
func (o *owning) kept(part any) bool {
	if o.detail == noContent || len(o.path) > 0 && o.path[0].FieldName != nil && *o.path[0].FieldName == "metadata" {
		return true
	}
	here := partAt(o.live(), o.path)
	if o.detail == shownContent {
		return here != nil || zero(part)
	}
	return contains(here, part)
}

// zero reports whether a part of an object is empty, which is not kept where it is the same as none.
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

// contains reports whether a value has all that a part has: the server may have given it defaults besides. What is null or an empty
// object may be kept or not.
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
