package stream

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// share lets the objects of a stream share memory, unless a transform may write to them.
func (s *shape) share() {
	if source, ok := s.source.(source.Sharer); ok && s.transform == nil {
		s.source = source.Shared()
	}
}

// shareParts lets an object share memory that was transformed, and that nobody else has.
func (s *shape) shareParts(o object.Object) {
	u, untyped := o.(*unstructured.Unstructured)
	if source, ok := s.source.(source.Sharing); ok && untyped {
		u.Object = source.Share(u.Object)
	}
}

// sharing returns what a stream holds of the answer to an own write. Other streams may hold the
// answer, too.
func (s *shape) sharing(o object.Object) object.Object {
	u, untyped := o.(*unstructured.Unstructured)
	if !untyped || s.transform != nil || s.key.form != object.Whole {
		return o
	}
	if _, ok := s.source.(source.Sharing); !ok {
		return o
	}
	one := &unstructured.Unstructured{Object: u.Object}
	s.shareParts(one)
	return one
}
