package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/client/connection"
	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/ordered"
	"github.com/kates-go/kates/internal/client/wire/tree"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// restSource lists and watches a resource over REST, as untyped objects. Requests are not retried
// here: client-go would do so ten times if the server answers 429 or 5xx with a Retry-After. The
// reflector obeys Retry-After as well, and shows the server's message in the status meanwhile.
type restSource struct {
	client    rest.Interface
	resource  objects.Resource
	namespace string
	form      objects.Form // that was asked for
	// maxObjectBytes bounds each object of an answer.
	maxObjectBytes int64
	lists          *lists
	helpers        *ordered.Pool // nil: none
	only           *only
	trees          *tree.Table
	originals      originals
	shared         bool // equal parts of objects are the same maps and slices
	source.Untyped
}

// Form is the one that was asked for.
func (s *restSource) Form() objects.Form { return s.form }

func (s *restSource) Within(namespace string) source.Source { return s.within(namespace) }

func (s *restSource) within(namespace string) *restSource {
	one := *s
	one.namespace = namespace
	return &one
}

var (
	optionsVersion = schema.GroupVersion{Version: "v1"}
	optionsCodec   = func() runtime.ParameterCodec {
		s := runtime.NewScheme()
		metav1.AddToGroupVersion(s, optionsVersion)
		return runtime.NewParameterCodec(s)
	}()
)

// get is a request with list options.
func (s *restSource) get(ctx context.Context, o metav1.ListOptions) *rest.Request {
	return connection.For(ctx, s.client).Get().AbsPath(path(s.resource, s.namespace)...).
		SpecificallyVersionedParams(&o, optionsCodec, optionsVersion).MaxRetries(0)
}

func (s *restSource) ListItems(
	ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error,
) (metav1.ListMeta, error) {
	return listItems(ctx, s, o, put)
}

// OpenPage sends a list request.
func (s *restSource) OpenPage(ctx context.Context, o metav1.ListOptions) (source.Page, error) {
	answer, err := s.get(ctx, o).SetHeader("Accept", acceptJSON).Stream(ctx)
	if err != nil {
		return nil, err
	}
	body := &measured{ReadCloser: answer}
	read := func(put func(runtime.Object) error, head func(metav1.ListMeta)) (metav1.ListMeta, error) {
		m, _, err := s.readList(body, s.decode, put, head)
		return m, err
	}
	return &page{body, read}, nil
}

// decode makes an untyped object.
func (s *restSource) decode(raw []byte, e frames.Encoding) (objects.Object, bool, error) {
	u := &unstructured.Unstructured{}
	if e != frames.JSON {
		return nil, false, fmt.Errorf("an untyped object in %s: nobody asked for that", e)
	}
	kept, err := s.only.of(raw, e)
	if err == nil {
		err = s.content(&u.Object, kept, e)
	}
	if errors.Is(err, errDamaged) {
		return nil, false, damaged(s.resource, raw, e, err)
	}
	if err != nil || u.GetName() == "" {
		o, err := undecoded(s.resource, raw, e, nil, s.originals, cmp.Or(err, errNoMetadata))
		return o, false, err
	}
	silent := u.Object["kind"] == nil && u.Object["apiVersion"] == nil
	if silent {
		u.SetGroupVersionKind(s.resource.Kind)
	}
	return u, silent, isOf(u, s.resource.Kind)
}

// content decodes what an untyped object has in it.
func (s *restSource) content(into *map[string]any, raw []byte, e frames.Encoding) error {
	if m, ok := s.trees.Decode(raw, s.shared); ok {
		*into = m
		return nil
	}
	return decodeInto(into, raw, e) // it knows what is wrong
}

// Share implements [source.Sharing].
func (s *restSource) Share(content map[string]any) map[string]any { return s.trees.Share(content) }

// Shared implements [source.Sharing].
func (s *restSource) Shared() source.Source {
	one := *s
	one.shared = true
	return &one
}

func (s *restSource) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	return s.watch(ctx, o, acceptJSON, s.event)
}

// watch opens a watch. Like client-go's watches, it does not count for the rate limit.
func (s *restSource) watch(
	ctx context.Context, o metav1.ListOptions, accept string, decode objectDecoder,
) (watch.Interface, error) {
	o.Watch = true
	body, err := s.get(ctx, o).SetHeader("Accept", accept).Throttle(nil).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return s.read(body, decode), nil
}
