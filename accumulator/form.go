package accumulator

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Form is how a stream represents its objects: how they are asked for, decoded and
// held. Streams of two forms of one query are two streams.
type Form string

const (
	// Whole objects, untyped: *unstructured.Unstructured.
	Whole Form = ""
	// Metadata alone: *metav1.PartialObjectMetadata, of the object's own kind. The server sends
	// nothing else. See
	// https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
	Metadata Form = "metadata"
)

// Former is a source that says in which form it delivers now, where that may be another than it was
// asked for: not every client and server can shorten objects. The stream then does, and its status
// says so.
type Former interface{ Form() Form }

// formNow says in which form the stream holds objects, and whether more than that
// comes over the wire.
func (s *stream) formNow() string {
	from, ok := s.feed.source.(Former)
	if ok && s.key.form != Whole && from.Form() != s.key.form {
		return string(s.key.form) + " of whole objects"
	}
	return string(s.key.form)
}

// shorten returns the metadata of an object in memory of its own, under the object's kind: what
// a server sends in short calls itself PartialObjectMetadata, and items of a list have no kind at
// all.
func shorten(o Object, kind schema.GroupVersionKind) (*metav1.PartialObjectMetadata, error) {
	short := &metav1.PartialObjectMetadata{}
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		*short = *o // one by one, so that none holds on to a whole page
	case *unstructured.Unstructured:
		content := map[string]any{"metadata": o.Object["metadata"]}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, short); err != nil {
			return nil, fmt.Errorf("read the metadata: %w", err)
		}
	default:
		return nil, fmt.Errorf("cannot read the metadata of a %T", o)
	}
	short.SetGroupVersionKind(kind)
	return short, nil
}

// untyped is an object as predicates see it.
func untyped(o Object) (*unstructured.Unstructured, error) {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return o, nil
	case *metav1.PartialObjectMetadata:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		return &unstructured.Unstructured{Object: content}, err
	}
	return nil, fmt.Errorf("a predicate cannot judge a %T", o)
}
