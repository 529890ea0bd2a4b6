package wire

import (
	"context"
	"io"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// typedSource lists and watches a resource's objects in their Go type, decoded one by one from the
// bytes of the answer: protobuf if the type decodes from it and the server sends it, else JSON.
// The first bytes of an answer tell its encoding; the request is no promise.
type typedSource struct {
	rest *restSource
	*decoder
	streamed bool                            // initial lists are streamed
	refused  atomic.Bool                     // the server refused protobuf
	came     atomic.Pointer[frames.Encoding] // of the last answer
}

const (
	acceptProtobuf = "application/vnd.kubernetes.protobuf,application/json"
	acceptJSON     = "application/json"
)

// Within is the source for one namespace. Its objects share memory with those of this source.
func (s *typedSource) Within(namespace string) source.Source {
	one := &typedSource{rest: s.rest.within(namespace), decoder: s.decoder, streamed: s.streamed}
	one.refused.Store(s.refused.Load())
	return one
}

// Form is typed, or some fields, with the encoding as soon as it is known.
func (s *typedSource) Form() objects.Form {
	e, form := s.came.Load(), objects.Typed
	if s.as != nil {
		form = objects.Fields
	}
	if e == nil {
		return form
	}
	return form + objects.Form(" from "+string(*e))
}

// Lists says how first lists are made.
func (s *typedSource) Lists() source.ListMode {
	if s.streamed {
		return source.ListsStreamed
	}
	return source.ListsPaged
}

// open sends a request and returns the body of the answer. If the server refuses protobuf, it is
// asked for JSON from then on.
func (s *typedSource) open(ctx context.Context, o metav1.ListOptions) (io.ReadCloser, error) {
	if s.proto && !s.refused.Load() {
		body, err := s.rest.get(ctx, o).SetHeader("Accept", acceptProtobuf).Stream(ctx)
		if !apierrors.IsNotAcceptable(err) && !apierrors.IsUnsupportedMediaType(err) {
			return body, err
		}
		s.refused.Store(true)
	}
	return s.rest.get(ctx, o).SetHeader("Accept", acceptJSON).Stream(ctx)
}

// heard notes the encoding of an answer.
func (s *typedSource) heard(e frames.Encoding) {
	if came := s.came.Load(); came == nil || *came != e {
		s.came.Store(&e)
	}
}

func (s *typedSource) ListItems(
	ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error,
) (metav1.ListMeta, error) {
	return listItems(ctx, s, o, put)
}

// OpenPage sends a list request.
func (s *typedSource) OpenPage(ctx context.Context, o metav1.ListOptions) (source.Page, error) {
	answer, err := s.open(ctx, o)
	if err != nil {
		return nil, err
	}
	body := &measured{ReadCloser: answer}
	read := func(put func(runtime.Object) error, head func(metav1.ListMeta)) (metav1.ListMeta, error) {
		m, e, err := s.rest.readList(body, s.item, put, head)
		if err == nil {
			s.heard(e)
		}
		return m, err
	}
	return &page{body, read}, nil
}

func (s *typedSource) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	o.Watch = true
	body, err := s.open(ctx, o)
	if err != nil {
		return nil, err
	}
	return s.rest.read(body, func(e frames.Event) (runtime.Object, error) {
		s.heard(e.Encoding)
		if err := ofKind(s.resource, schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)); err != nil {
			return nil, err
		}
		return s.decode(e.Object, e.Encoding)
	}), nil
}
