package kates

import "maps"

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
		for _, f := range signals {
			if f(old, current) {
				return true
			}
		}
		return false
	}
}
