package stream

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/object/project"
)

// keeping is between a form and the paths of the fields that are held.
const keeping = ", only "

// Keeping returns a form of objects of which only some fields are held: the other ones are as if
// the object did not have them. Identity has to be among them, see [Identity].
func (f Form) Keeping(k *project.Keep) Form { return f + keeping + Form(k.String()) }

// Parts returns a form without what [Form.Keeping] has added, and that; "" if all fields are held.
func (f Form) Parts() (base Form, paths string) {
	whole, paths, _ := strings.Cut(string(f), keeping)
	return Form(whole), paths
}

// Identity are the paths of fields that a stream needs of each object: which object and version it
// is, and whether it is being deleted. The generation costs nothing, and statements about an
// object name it.
var Identity = []project.Path{
	{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"},
	{"metadata", "resourceVersion"}, {"metadata", "deletionTimestamp"}, {"metadata", "generation"},
}

// keepOf returns what a form keeps, nil for all fields.
func keepOf(f Form) *project.Keep {
	_, paths := f.Parts()
	if paths == "" {
		return nil
	}
	k, err := project.ParseKeep(paths)
	if err != nil {
		panic(err) // Keeping has written it
	}
	return k
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
func (s *Set) Partly(r Resource, key Key, path ...string) string {
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

// only says of a form in words which fields are held, if not all are.
func only(form, paths string) string {
	if paths == "" {
		return form
	}
	return strings.TrimPrefix(form+keeping+paths, ", ")
}
