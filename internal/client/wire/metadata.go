package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/parts"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// metadataSource lists and watches the metadata of a resource's objects. A server that cannot
// shorten objects, like some aggregated ones, sends whole objects.
type metadataSource struct {
	rest    *restSource
	whole   *restSource
	refused atomic.Bool // the server cannot shorten objects
	// parts decodes protobuf where nobody writes to the objects: they share memory. Nil where
	// somebody may.
	parts *parts.Table
	source.Untyped
}

func (s *metadataSource) Within(namespace string) source.Source {
	one := &metadataSource{rest: s.rest.within(namespace), whole: s.whole.within(namespace), parts: s.parts}
	one.refused.Store(s.refused.Load())
	return one
}

// Whole objects are not accepted, so that a server that cannot shorten them says so.
var acceptShort, acceptShortList = accept("PartialObjectMetadata"), accept("PartialObjectMetadataList")

func accept(kind string) string {
	as := ";as=" + kind + ";g=meta.k8s.io;v=v1"
	return "application/vnd.kubernetes.protobuf" + as + ",application/json" + as
}

// Form is metadata alone, until the server refuses that.
func (s *metadataSource) Form() objects.Form {
	if s.refused.Load() {
		return objects.Whole
	}
	return objects.Metadata
}

// refuses notes that a server cannot shorten objects: it says so, or sends whole objects.
func (s *metadataSource) refuses(err error) bool {
	if apierrors.IsNotAcceptable(err) || runtime.IsNotRegisteredError(err) || s.isWhole(err) {
		s.refused.Store(true)
	}
	return s.refused.Load()
}

// isWhole reports whether an answer was refused that is a list of whole objects.
func (s *metadataSource) isWhole(err error) bool {
	var other *kindError
	if !errors.As(err, &other) || other.what != aList {
		return false
	}
	want := s.whole.lists.wanted()
	return other.got == want || other.got.GroupVersion() == want.GroupVersion() && s.whole.lists.custom()
}

func (s *metadataSource) ListItems(
	ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error,
) (metav1.ListMeta, error) {
	return listItems(ctx, s, o, put)
}

// OpenPage sends a list request.
func (s *metadataSource) OpenPage(ctx context.Context, o metav1.ListOptions) (source.Page, error) {
	if s.refused.Load() {
		return s.whole.OpenPage(ctx, o)
	}
	answer, err := s.rest.get(ctx, o).SetHeader("Accept", acceptShortList).Stream(ctx)
	switch {
	case err != nil && s.refuses(err):
		return s.whole.OpenPage(ctx, o)
	case err != nil:
		return nil, err
	}
	body := &measured{ReadCloser: answer}
	read := func(put func(runtime.Object) error, head func(metav1.ListMeta)) (metav1.ListMeta, error) {
		m, _, err := s.rest.readList(body, s.decode, put, head)
		if err != nil && s.refuses(err) {
			body.bytes = 0 // they were of no list
			return s.whole.ListItems(ctx, o, put)
		}
		return m, err
	}
	return &page{body, read}, nil
}

// Shared lets the objects share parts as they are decoded.
func (s *metadataSource) Shared() source.Source {
	if table := parts.New(reflect.TypeFor[metav1.PartialObjectMetadata](), false); table.Shares() {
		s.parts = table
	}
	return s
}

// read decodes what a server that shortens objects sends.
func (s *metadataSource) read(raw []byte, e frames.Encoding) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	if s.parts != nil && e == frames.Protobuf {
		whole := false
		err := guard.Library(func() error {
			whole = s.parts.Decode(o, raw)
			return nil
		})
		if err == nil && whole && o.Name != "" {
			return o, nil
		}
		o = &metav1.PartialObjectMetadata{} // what is wrong, if anything is, becomes known now
	}
	return o, decodeInto(o, raw, e)
}

// decode decodes the metadata of an object.
func (s *metadataSource) decode(raw []byte, e frames.Encoding) (objects.Object, bool, error) {
	o, err := s.read(raw, e)
	if errors.Is(err, errDamaged) {
		return nil, false, damaged(s.rest.resource, raw, e, err)
	}
	if err != nil || o.Name == "" {
		o, err := undecoded(s.rest.resource, raw, e, nil, s.rest.originals, cmp.Or(err, errNoMetadata))
		return o, false, err
	}
	silent := o.GroupVersionKind().Empty()
	if err := isOf(o, shortKind); !silent && err != nil {
		return nil, false, err
	}
	return o, silent, nil
}

func (s *metadataSource) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	if s.refused.Load() {
		return s.whole.WatchWithContext(ctx, o)
	}
	w, err := s.rest.watch(ctx, o, acceptShort, s.event)
	if err != nil && s.refuses(err) {
		return s.whole.WatchWithContext(ctx, o)
	}
	return w, err
}

// event makes the metadata of an event's object. A server that does not know how to shorten
// objects sends whole ones.
func (s *metadataSource) event(e frames.Event) (runtime.Object, error) {
	o, err := s.read(e.Object, e.Encoding)
	if err != nil {
		return nil, fmt.Errorf("its object does not decode: %w", err)
	}
	is := schema.FromAPIVersionAndKind(cmp.Or(e.APIVersion, o.APIVersion), cmp.Or(e.Kind, o.Kind))
	if is.Kind == "PartialObjectMetadata" && is.Group == metav1.GroupName {
		return o, nil
	}
	return o, ofKind(s.rest.resource, is)
}
