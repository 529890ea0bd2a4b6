package compile

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/kates-go/kates/internal/base/guard"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// Signal says whether a change is worth a signal.
type Signal struct {
	Of objects.Signal
	Reads
}

// SignalOf makes a Signal of a function that takes a T: see kates.SignalOf.
func SignalOf[T any](f func(old, current T) bool) *Signal {
	as := newConverter[T]()
	s := &Signal{Reads: as.reads(f == nil)}
	s.Of = func(old, current objects.Object) bool {
		before, err := as.orNil(old)
		after, err2 := as.orNil(current)
		return err != nil || err2 != nil || f(before, after)
	}
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
	default:
		s.err = cmp.Or(s.err, fmt.Errorf("its argument can be nil: a pointer, a map or a metav1.Object; a %s cannot", objects.TypeName(t)))
	}
	return s
}

// Worth asks a Signal. It returns an error if the function panics: that counts as true.
func (s *Signal) Worth(old, current objects.Object) (yes bool, err error) {
	switch {
	case s == nil:
		return true, nil
	case s.err != nil:
		return true, s.err
	}
	yes = true
	err = guard.Named("the Signal function panicked", func() error {
		yes = s.Of(old, current)
		return nil
	})
	return yes, err
}

// The metadata that functions of this library read.
var (
	labelsPath      = project.Path{"metadata", "labels"}
	annotationsPath = project.Path{"metadata", "annotations"}
	generationPath  = project.Path{"metadata", "generation"}
	ownersPath      = project.Path{"metadata", "ownerReferences"}
	finalizersPath  = project.Path{"metadata", "finalizers"}
	// allMetadata is what functions on metadata read, beside what is always held.
	allMetadata = []project.Path{labelsPath, annotationsPath, ownersPath, finalizersPath, generationPath}
)

// changes makes a Signal that is true of what comes and goes, and of an object whose change counts.
func changes(reads project.Path, counts func(old, current objects.Object) bool) *Signal {
	return &Signal{Reads: reading(reads), Of: func(old, current objects.Object) bool {
		return old == nil || current == nil || counts(old, current)
	}}
}

// GenerationChanged makes a Signal for changes of what users want of an object.
func GenerationChanged() *Signal {
	return changes(generationPath, func(old, current objects.Object) bool {
		return current.GetGeneration() == 0 || old.GetGeneration() != current.GetGeneration() ||
			(old.GetDeletionTimestamp() == nil) != (current.GetDeletionTimestamp() == nil)
	})
}

// LabelsChanged makes a Signal for changes of labels.
func LabelsChanged() *Signal {
	return changes(labelsPath, func(old, current objects.Object) bool { return !maps.Equal(old.GetLabels(), current.GetLabels()) })
}

// AnnotationsChanged makes a Signal for changes of annotations.
func AnnotationsChanged() *Signal {
	return changes(annotationsPath, func(old, current objects.Object) bool {
		return !maps.Equal(old.GetAnnotations(), current.GetAnnotations())
	})
}

// AnySignal makes a Signal for changes that one of several is for.
func AnySignal(all []*Signal) *Signal {
	s := &Signal{}
	for _, one := range all {
		if one != nil {
			s.add(one.Reads)
		}
	}
	s.Of = func(old, current objects.Object) bool {
		return slices.ContainsFunc(all, func(one *Signal) bool { return one == nil || one.Of(old, current) })
	}
	return s
}
