package stream

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/object"
)

// Form is how a stream asks for, decodes and holds its objects. One query in two forms is two
// streams.
type Form string

const (
	// Whole objects, untyped: *unstructured.Unstructured.
	Whole Form = ""
	// Metadata alone: *metav1.PartialObjectMetadata, of the object's own kind. The server sends
	// nothing else. See
	// https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
	Metadata Form = "metadata"
	// Typed objects: pointers to the Go type of the kind, decoded by the source. One that does
	// not decode is what [Undecoded] makes of it.
	Typed Form = "typed"
)

// compact lets an object share memory with others that the stream holds.
func (s *shape) compact(o, before Object) {
	if s.base.decoded() {
		s.source.Compact(o, before, s.transform == nil)
	}
}

// formNow describes the form of the stream's objects, and what comes over the wire if that
// differs.
func (s *shape) formNow() string {
	form := s.source.Form()
	_, paths := s.key.form.Parts()
	switch {
	case s.base.decoded():
		return only(string(form), paths)
	case s.base == Metadata && form != Metadata:
		return string(Metadata) + " of whole objects"
	}
	return only(string(s.base), paths)
}

// inForm puts an object into the stream's form.
func (s *shape) inForm(o Object) (Object, error) {
	u, untyped := o.(*unstructured.Unstructured)
	switch {
	case s.base == Metadata:
		return Shorten(o, s.resource.Kind)
	case !untyped:
		return o, nil
	case s.base.decoded():
		return s.source.Typed(s.pruned(u))
	}
	return s.pruned(u), nil
}

// is reports whether an object is in the stream's form already.
func (s *shape) is(o Object) bool {
	_, untyped := object.Bare(o).(*unstructured.Unstructured)
	return s.key.form == Whole || s.base.decoded() && !untyped
}

// Shorten returns the metadata of an object in memory of its own, under the object's kind. A
// server sends it under the kind PartialObjectMetadata, and items of a list under no kind.
func Shorten(o Object, kind schema.GroupVersionKind) (*metav1.PartialObjectMetadata, error) {
	short := &metav1.PartialObjectMetadata{}
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		*short = *o // a copy: a pointer into the list would keep the whole page
	case *unstructured.Unstructured:
		content := map[string]any{"metadata": o.Object["metadata"]}
		if err := asjson.Decode(content, short); err != nil {
			return nil, fmt.Errorf("read the metadata: %w", err)
		}
	default:
		m, ok := metadataOf(o)
		if !ok {
			return nil, fmt.Errorf("cannot read the metadata of a %T", o)
		}
		short.ObjectMeta = *m
	}
	short.SetGroupVersionKind(kind)
	return short, nil
}
