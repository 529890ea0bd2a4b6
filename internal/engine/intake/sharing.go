package intake

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// shareParts lets an object share memory that was transformed, and that nobody else has.
func (s *Intake) shareParts(o object.Object) {
	u, untyped := o.(*unstructured.Unstructured)
	if source, ok := s.Source.(source.Sharing); ok && untyped {
		u.Object = source.Share(u.Object)
	}
}

// ShareAnswer returns what a stream holds of the answer to an own write. Other streams may hold the
// answer, too.
func (s *Intake) ShareAnswer(o object.Object) object.Object {
	u, untyped := o.(*unstructured.Unstructured)
	if !untyped || s.Transform != nil || s.Key.Form != object.Whole {
		return o
	}
	if _, ok := s.Source.(source.Sharing); !ok {
		return o
	}
	one := &unstructured.Unstructured{Object: u.Object}
	s.shareParts(one)
	return one
}
