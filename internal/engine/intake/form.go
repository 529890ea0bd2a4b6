package intake

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/object"
)

// compact lets an object share memory with others that the stream holds.
func (s *Intake) compact(o, before object.Object) {
	if s.base.Decoded() {
		s.Source.Compact(o, before, s.Transform == nil)
	}
}

// FormNow describes the form of the stream's objects, and what comes over the wire if that
// differs.
func (s *Intake) FormNow() string {
	form := s.Source.Form()
	_, paths := s.Key.Form.Parts()
	switch {
	case s.base.Decoded():
		return object.OnlyPaths(string(form), paths)
	case s.base == object.Metadata && form != object.Metadata:
		return string(object.Metadata) + " of whole objects"
	}
	return object.OnlyPaths(string(s.base), paths)
}

// inForm puts an object into the stream's form.
func (s *Intake) inForm(o object.Object) (object.Object, error) {
	u, untyped := o.(*unstructured.Unstructured)
	switch {
	case s.base == object.Metadata:
		return object.Shorten(o, s.Resource.Kind)
	case !untyped:
		return o, nil
	case s.base.Decoded():
		return s.Source.Typed(s.pruned(u))
	}
	return s.pruned(u), nil
}

// inFormAlready reports whether an object is in the stream's form already.
func (s *Intake) inFormAlready(o object.Object) bool {
	_, untyped := object.Bare(o).(*unstructured.Unstructured)
	return s.Key.Form == object.Whole || s.base.Decoded() && !untyped
}

// holdsAll reports whether the stream holds its objects as the server sends them, or as their form
// does. If it does not, an object of it is no base for a write, and says nothing of the fields
// that it lacks.
func (s *Intake) holdsAll() bool { return s.HoldsForm() && !s.Key.Form.Projects() }

// HoldsForm reports whether the stream holds all that its form has of an object.
func (s *Intake) HoldsForm() bool { return s.Transform == nil && s.Keep == nil }

// pruned returns what the stream holds of an untyped object. It may share memory with the object.
func (s *Intake) pruned(o *unstructured.Unstructured) *unstructured.Unstructured {
	if s.Keep == nil {
		return o
	}
	return &unstructured.Unstructured{Object: s.Keep.Tree(o.Object)}
}
