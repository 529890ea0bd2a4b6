package stream

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/object"
)

// Sharer is a [Source] whose objects can share memory as soon as they are decoded.
type Sharer interface {
	Source
	// Shared returns a source of the same objects, in which equal parts of several objects are the
	// same memory. Nobody may write to them, not even a [object.Transform].
	Shared() Source
}

// Sharing is a [Source] of untyped objects that can share memory.
type Sharing interface {
	Sharer
	// Share returns content that equals an untyped object's, in which equal parts of those that it
	// has returned are the same. It writes to nothing. Nobody writes to the content or to its
	// parts from now on.
	Share(content map[string]any) map[string]any
}

// share lets the objects of a stream share memory, unless a transform may write to them.
func (s *shape) share() {
	if source, ok := s.source.(Sharer); ok && s.transform == nil {
		s.source = source.Shared()
	}
}

// shareParts lets an object share memory that was transformed, and that nobody else has.
func (s *shape) shareParts(o object.Object) {
	u, untyped := o.(*unstructured.Unstructured)
	if source, ok := s.source.(Sharing); ok && untyped {
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
	if _, ok := s.source.(Sharing); !ok {
		return o
	}
	one := &unstructured.Unstructured{Object: u.Object}
	s.shareParts(one)
	return one
}
