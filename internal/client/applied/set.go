package applied

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/object"
)

// Errors of sets. Package kates exports them.
var (
	ErrNotOwned = errors.New("it exists, and is not owned by this set")
	ErrDeleting = errors.New("it is being deleted")
)

// Object is an API object of any Go type.
type Object = object.Object

// Set holds the rules of one owned set.
type Set struct {
	Owner      Object // with its UID
	Label      string // the key of the set's label
	Value      string // its value: the set's name and the owner's UID
	Annotation string // the annotation for what was applied
	Plain      bool   // plain owner references, in place of controller references
	Remote     bool   // the owner lives in another cluster: a label has its UID, and no reference names it
	Adopt      bool   // take in objects that exist without belonging to the set

	Scheme   *runtime.Scheme                    // for the kinds of Go types
	BuiltIn  func(schema.GroupVersionKind) bool // whether a kind is one of Kubernetes' own
	Annotate bool                               // say in the objects what is applied
}

// Name gives the set its name, and with it the value of its label. A label, if it is not empty,
// takes the place of the default one, and the annotation becomes its own.
func (s *Set) Name(name, label string) error {
	if label != "" && label != s.Label {
		s.Label, s.Annotation = label, annotationFor(s.Annotation, label)
	}
	s.Value = name
	if uid := string(s.Owner.GetUID()); uid != "" { // an object of a fake has none
		s.Value += "." + uid
	}
	if name == "" {
		return errors.New("it has no Name")
	}
	problems := validation.IsQualifiedName(s.Label)
	problems = append(problems, validation.IsValidLabelValue(s.Value)...)
	if len(problems) > 0 {
		return fmt.Errorf("the set's name %q makes no label %s=%s: %s",
			name, s.Label, s.Value, strings.Join(problems, "; "))
	}
	return nil
}

// Selector selects the objects that have the label of the set.
func (s *Set) Selector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{s.Label: s.Value})
}

// Ours reports whether an object has the label of the set and names its owner, which may own it.
func (s *Set) Ours(o Object) bool {
	reachable := s.Remote || s.Owner.GetNamespace() == "" || s.Owner.GetNamespace() == o.GetNamespace()
	return reachable && o.GetLabels()[s.Label] == s.Value && s.has(o)
}

// Prunable reports whether an object belongs to the set and is not being deleted.
func (s *Set) Prunable(o Object) bool { return s.Ours(o) && o.GetDeletionTimestamp() == nil }

// HasOtherOwners reports whether an object outlives the owner, because others own it too.
func (s *Set) HasOtherOwners(o Object) bool {
	if s.Remote {
		return len(o.GetOwnerReferences()) > 0
	}
	return owners.HasOthers(s.Owner, o)
}

// MayApply returns an error if the set must not write to the live object, which may be nil.
func (s *Set) MayApply(live Object) error {
	if live == nil {
		return nil
	}
	owned := s.has(live)
	other := metav1.GetControllerOfNoCopy(live)
	if other != nil && (s.Remote || !owners.Same(*other, owners.ControllerReference(s.Owner))) && !(owned && s.Plain) {
		return fmt.Errorf("%w: %s %q", owners.ErrControlled, other.Kind, other.Name)
	}
	if err := s.controlledElsewhere(live); err != nil {
		return err
	}
	if label, labelled := live.GetLabels()[s.Label]; !s.Adopt && (!owned || labelled && label != s.Value) {
		return ErrNotOwned
	}
	if live.GetDeletionTimestamp() != nil {
		return ErrDeleting
	}
	return nil
}

// SameObject reports whether nothing has changed by which MayApply decides.
func SameObject(a, b Object) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.GetUID() == b.GetUID() && (a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		reflect.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		reflect.DeepEqual(a.GetLabels(), b.GetLabels())
}

// Release takes an object out of the set: it loses the label, the annotation and the reference.
func (s *Set) Release(o Object) {
	kept, notes := o.GetLabels(), o.GetAnnotations()
	if s.Remote {
		delete(kept, OwnerLabel)
		delete(notes, OwnerAnnotation)
	} else {
		owners.Remove(s.Owner, o)
	}
	delete(kept, s.Label)
	o.SetLabels(kept)
	delete(notes, s.Annotation)
	o.SetAnnotations(notes)
}
