package kates

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/wire/frames"
)

// typedSource lists and watches a resource's objects in their Go type, straight from the wire, one by one: protobuf where the
// type decodes from it and the server sends it, else JSON. What the server sent, its first bytes say; what it was
// asked for is no promise.
type typedSource struct {
	rest restSource
	*decoder
	streamed bool // lists
	refused  atomic.Bool
	came     atomic.Pointer[frames.Encoding]
}

const (
	acceptProtobuf = "application/vnd.kubernetes.protobuf,application/json"
	acceptJSON     = "application/json"
)

// typedSource is the source of a kind whose Go type the scheme knows. It reports false for others.
func (c *core) typedSource(r accumulator.Resource, namespace string) (*typedSource, bool) {
	typ, ok := c.typeOf(r.Kind)
	if !ok {
		return nil, false
	}
	return &typedSource{
		rest: restSource{c.metadata, r, namespace}, decoder: newDecoder(r, typ, c.managedFields), streamed: c.streamTyped,
	}, true
}

// Within is the source for one namespace, which has in common with this one what its objects have in common.
func (s *typedSource) Within(namespace string) cache.ListerWatcherWithContext {
	one := &typedSource{rest: restSource{s.rest.client, s.rest.resource, namespace}, decoder: s.decoder, streamed: s.streamed}
	one.refused.Store(s.refused.Load())
	return one
}

// typeOf is the Go type of a kind's objects, where objects can be streamed in it.
func (c *core) typeOf(kind schema.GroupVersionKind) (reflect.Type, bool) {
	o, err := c.scheme.New(kind)
	if err != nil {
		return nil, false
	}
	_, ok := o.(accumulator.Object)
	return reflect.TypeOf(o).Elem(), ok
}

// Form is typed, with the encoding once it is known.
func (s *typedSource) Form() accumulator.Form {
	e := s.came.Load()
	if e == nil {
		return accumulator.Typed
	}
	return accumulator.Typed + accumulator.Form(" from "+string(*e))
}

// StreamsLists says whether initial lists are streamed.
func (s *typedSource) StreamsLists() bool { return s.streamed }

// open makes a request and returns the body of its answer. A server that refuses protobuf is asked for JSON from then on.
func (s *typedSource) open(ctx context.Context, o metav1.ListOptions) (io.ReadCloser, error) {
	if s.hasProtobuf() && !s.refused.Load() {
		body, err := s.rest.get(o).SetHeader("Accept", acceptProtobuf).Stream(ctx)
		if !apierrors.IsNotAcceptable(err) && !apierrors.IsUnsupportedMediaType(err) {
			return body, err
		}
		s.refused.Store(true)
	}
	return s.rest.get(o).SetHeader("Accept", acceptJSON).Stream(ctx)
}

// heard notes how the server encodes objects.
func (s *typedSource) heard(e frames.Encoding) {
	if came := s.came.Load(); came == nil || *came != e {
		s.came.Store(&e)
	}
}

// ListItems lists, as the options say.
func (s *typedSource) ListItems(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
	body, err := s.open(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer func() { _ = body.Close() }() // it has been read
	m, e, err := frames.List(body, func(raw []byte, e frames.Encoding) error {
		item, err := s.decode(raw, e)
		if err != nil {
			return err
		}
		return put(item)
	})
	if err != nil {
		return m, fmt.Errorf("read a list: %w", err)
	}
	s.heard(e)
	return m, nil
}

// ListWithContext lists, as the options say.
func (s *typedSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := &metav1.List{}
	var err error
	list.ListMeta, err = s.ListItems(ctx, o, func(item runtime.Object) error {
		list.Items = append(list.Items, runtime.RawExtension{Object: item})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// WatchWithContext watches, as the options say.
func (s *typedSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	body, err := s.open(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), &typedEvents{s, frames.Watch(body), body},
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")), nil
}

// typedEvents decodes the events of a watch.
type typedEvents struct {
	source *typedSource
	events *frames.Events
	body   io.Closer
}

// Close ends the watch.
func (t *typedEvents) Close() { _ = t.body.Close() }

// Decode waits for the next event.
func (t *typedEvents) Decode() (watch.EventType, runtime.Object, error) {
	e, err := t.events.Next()
	if err != nil {
		return "", nil, err
	}
	t.source.heard(e.Encoding)
	var o runtime.Object
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		o, err = t.source.decode(e.Object, e.Encoding)
	case watch.Bookmark:
		o, err = position(e.Object, e.Encoding)
	case watch.Error:
		status := &metav1.Status{}
		o, err = status, decodeInto(status, e.Object, e.Encoding)
	default:
		err = fmt.Errorf("an event of type %q", e.Type)
	}
	return e.Type, o, err
}
