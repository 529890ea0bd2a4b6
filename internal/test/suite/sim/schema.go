package sim

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/object"
)

// Reschema changes how the server shows every object from now on: the same versions with another
// spec.schema, as after a schema has gained a default. What is on its way already stays as it is,
// and so do open watches.
func (s *Server) Reschema() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Schema++
}

// render returns a copy of an object, as the server shows it now. Called with Mu held.
func (s *Server) render(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	if s.Schema > 0 {
		_ = unstructured.SetNestedField(u.Object, int64(s.Schema), "spec", "schema")
	}
	return u
}

// shown is render, called without Mu.
func (s *Server) shown(u *unstructured.Unstructured) *unstructured.Unstructured {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.render(u)
}

// SchemaOf says which schema the server had when it showed an object.
func SchemaOf(o object.Object) int {
	n, _, _ := unstructured.NestedInt64(o.(*unstructured.Unstructured).Object, "spec", "schema")
	return int(n)
}

// Showed returns an error if the server has never shown an object's version with the schema that
// it has.
func (s *Server) Showed(resource string, o *unstructured.Unstructured) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, e := range s.History {
		if n := SchemaOf(o); e.Resource == resource && e.Rev == Revision(o.GetResourceVersion()) && (n < e.Schema || n > s.Schema) {
			return fmt.Errorf("%s was shown with the schemas %d to %d, and not %d", Describe(o), e.Schema, s.Schema, n)
		}
	}
	return nil
}

// Relist makes every stream list anew: there is a newer version, the history before that is
// forgotten, and the watches end.
func (s *Server) Relist() {
	s.Mu.Lock()
	s.Rev++
	s.Oldest = s.Rev
	s.Mu.Unlock()
	s.Cut()
}
