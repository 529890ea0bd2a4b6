package wire

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/wire/frames"
)

// metadataSource lists and watches the metadata of a resource's objects. A server that cannot
// shorten objects, like some aggregated ones, sends whole objects.
type metadataSource struct {
	rest    *restSource
	whole   *restSource
	refused atomic.Bool // the server cannot shorten objects
	stream.Untyped
}

func (s *metadataSource) Within(namespace string) stream.Source {
	one := &metadataSource{rest: s.rest.within(namespace), whole: s.whole.within(namespace)}
	one.refused.Store(s.refused.Load())
	return one
}

// MetadataClient makes the client for [Server].Metadata. It prefers protobuf, and its codecs know
// PartialObjectMetadata and the list of these.
func MetadataClient(config *rest.Config, hc *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.ContentType = runtime.ContentTypeProtobuf
	config.NegotiatedSerializer = discreet{metainternalversionscheme.Codecs.WithoutConversion()}
	config.GroupVersion = &schema.GroupVersion{}
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	return rest.RESTClientForConfigAndClient(config, hc)
}

// Whole objects are not accepted, so that a server that cannot shorten them says so.
var acceptShort, acceptShortList = accept("PartialObjectMetadata"), accept("PartialObjectMetadataList")

func accept(kind string) string {
	as := ";as=" + kind + ";g=meta.k8s.io;v=v1"
	return "application/vnd.kubernetes.protobuf" + as + ",application/json" + as
}

// Form is metadata alone, until the server refuses that.
func (s *metadataSource) Form() stream.Form {
	if s.refused.Load() {
		return stream.Whole
	}
	return stream.Metadata
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
func (s *metadataSource) OpenPage(ctx context.Context, o metav1.ListOptions) (stream.Page, error) {
	if s.refused.Load() {
		return s.whole.OpenPage(ctx, o)
	}
	body, err := s.rest.get(ctx, o).SetHeader("Accept", acceptShortList).Stream(ctx)
	switch {
	case err != nil && s.refuses(err):
		return s.whole.OpenPage(ctx, o)
	case err != nil:
		return nil, err
	}
	read := func(put func(runtime.Object) error, head func(metav1.ListMeta)) (metav1.ListMeta, error) {
		m, _, err := s.rest.readList(body, s.decode, put, head)
		if err != nil && s.refuses(err) {
			return s.whole.ListItems(ctx, o, put)
		}
		return m, err
	}
	return &page{body, read}, nil
}

// decode decodes the metadata of an object.
func (s *metadataSource) decode(raw []byte, e frames.Encoding) (stream.Object, bool, error) {
	o := &metav1.PartialObjectMetadata{}
	err := decodeInto(o, raw, e)
	if errors.Is(err, errDamaged) {
		return nil, false, damaged(s.rest.resource, raw, e, err)
	}
	if err != nil || o.Name == "" {
		o, err := undecoded(s.rest.resource, raw, e, nil, cmp.Or(err, errNoMetadata))
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
	w, err := s.rest.watch(ctx, o, acceptShort, short(s.rest.resource))
	if err != nil && s.refuses(err) {
		return s.whole.WatchWithContext(ctx, o)
	}
	return w, err
}
