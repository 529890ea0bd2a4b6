package stream

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// compact lets an object share memory with others that the stream holds.
func (s *shape) compact(o, before object.Object) {
	if s.base.Decoded() {
		s.source.Compact(o, before, s.transform == nil)
	}
}

// formNow describes the form of the stream's objects, and what comes over the wire if that
// differs.
func (s *shape) formNow() string {
	form := s.source.Form()
	_, paths := s.key.form.Parts()
	switch {
	case s.base.Decoded():
		return object.OnlyPaths(string(form), paths)
	case s.base == object.Metadata && form != object.Metadata:
		return string(object.Metadata) + " of whole objects"
	}
	return object.OnlyPaths(string(s.base), paths)
}

// inForm puts an object into the stream's form.
func (s *shape) inForm(o object.Object) (object.Object, error) {
	u, untyped := o.(*unstructured.Unstructured)
	switch {
	case s.base == object.Metadata:
		return object.Shorten(o, s.resource.Kind)
	case !untyped:
		return o, nil
	case s.base.Decoded():
		return s.source.Typed(s.pruned(u))
	}
	return s.pruned(u), nil
}

// is reports whether an object is in the stream's form already.
func (s *shape) is(o object.Object) bool {
	_, untyped := object.Bare(o).(*unstructured.Unstructured)
	return s.key.form == object.Whole || s.base.Decoded() && !untyped
}

// holdsAll reports whether the stream holds its objects as the server sends them, or as their form
// does. If it does not, an object of it is no base for a write, and says nothing of the fields
// that it lacks.
func (s *shape) holdsAll() bool { return s.holdsForm() && !s.key.form.Projects() }

// holdsForm reports whether the stream holds all that its form has of an object.
func (s *shape) holdsForm() bool { return s.transform == nil && s.keep == nil }

// pruned returns what the stream holds of an untyped object. It may share memory with the object.
func (s *shape) pruned(o *unstructured.Unstructured) *unstructured.Unstructured {
	if s.keep == nil {
		return o
	}
	return &unstructured.Unstructured{Object: s.keep.Tree(o.Object)}
}

// Partly returns in words what a stream of a resource holds of an object, if it holds only some
// fields of it, and not that at a path. It is empty if there is no such stream.
func (s *Set) Partly(r object.Resource, key object.Key, path ...string) string {
	if !r.Namespaced {
		key.Namespace = ""
	}
	for _, st := range s.serving(r) {
		if !st.covers(key) {
			continue
		}
		if st.keep != nil && !st.keep.Holds(path...) {
			return st.keep.String()
		}
		if p, projects := st.key.form.Projection(); projects && !project.Has(p.Into, path...) {
			return "the fields of " + p.Into.String()
		}
	}
	return ""
}
