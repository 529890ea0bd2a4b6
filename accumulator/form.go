package accumulator

import (
	"errors"
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
	// Typed objects: pointers to the Go type of the kind, decoded by the source, which is a [Typer]. One
	// that does not decode is what [Undecoded] makes of it.
	Typed Form = "typed"
)

// Former is a source that says in which form it delivers now, where that may be another than it was
// asked for: not every client and server can shorten objects. The stream then does, and its status
// says so. Of typed objects it says more exactly how they are encoded on the wire.
type Former interface{ Form() Form }

// Typer is a source of typed objects. Typed makes one of an untyped one, the answer to an own write, in memory of its own,
// just as it would have decoded it; an error means that it does not decode.
type Typer interface {
	Typed(o *unstructured.Unstructured) (Object, error)
}

// Compacter is a source of objects that can share memory with each other. Compact is called once for an object that
// is about to be stored, which nobody else has yet. Unless it is final, a [Transform] may still write to it. before is another
// version of it, of which most is the same: nil, or published, and then to be read only. It need not be of the object's Go type.
type Compacter interface {
	Compact(o, before Object, final bool)
}

func (s *stream) compact(o, before Object) {
	if c, ok := s.feed.source.(Compacter); ok && s.key.form == Typed {
		c.Compact(o, before, s.transform == nil)
	}
}

// formNow says in which form the stream holds objects, and what comes over the wire if that is something else.
func (s *stream) formNow() string {
	from, ok := s.feed.source.(Former)
	switch {
	case !ok || s.key.form == Whole:
		return string(s.key.form)
	case s.key.form == Typed:
		return string(from.Form())
	case from.Form() != s.key.form:
		return string(s.key.form) + " of whole objects"
	}
	return string(s.key.form)
}

// inForm puts an object into the stream's form.
func (s *stream) inForm(o Object) (Object, error) {
	switch s.key.form {
	case Metadata:
		return shorten(o, s.resource.Kind)
	case Typed:
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil
		}
		if typer, ok := s.feed.source.(Typer); ok {
			return typer.Typed(u)
		}
		return nil, errors.New("its source knows no Go type for it")
	}
	return o, nil
}

// is reports whether an object is in the stream's form already.
func (s *stream) is(o Object) bool {
	_, untyped := o.(*unstructured.Unstructured)
	return s.key.form == Whole || s.key.form == Typed && !untyped
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
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("a predicate cannot judge a %T: %w", o, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
