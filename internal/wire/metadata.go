package wire

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/accumulator"
)

// metadataSource lists and watches the metadata of a resource's objects. A server that cannot shorten
// objects, like some aggregated ones, sends whole objects.
type metadataSource struct {
	rest    restSource
	whole   *restSource
	refused atomic.Bool // the server cannot shorten objects
}

// Within is the source for one namespace.
func (s *metadataSource) Within(namespace string) cache.ListerWatcherWithContext {
	whole := restSource{s.whole.client, s.rest.resource, namespace}
	short := restSource{s.rest.client, s.rest.resource, namespace}
	one := &metadataSource{rest: short, whole: &whole}
	one.refused.Store(s.refused.Load())
	return one
}

// MetadataClient makes the client for [Server].Metadata.
func MetadataClient(config *rest.Config, hc *http.Client) (rest.Interface, error) {
	config = metadata.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	return rest.RESTClientForConfigAndClient(config, hc)
}

// Whole objects are not accepted, so that a server that cannot shorten them says so.
var acceptShort, acceptShortList = accept("PartialObjectMetadata"), accept("PartialObjectMetadataList")

func accept(kind string) string {
	as := ";as=" + kind + ";g=meta.k8s.io;v=v1"
	return "application/vnd.kubernetes.protobuf" + as + ",application/json" + as
}

// Form is metadata alone, until the server refuses that.
func (s *metadataSource) Form() accumulator.Form {
	if s.refused.Load() {
		return accumulator.Whole
	}
	return accumulator.Metadata
}

// refuses notes that a server cannot shorten objects: it says so, or sends something else.
func (s *metadataSource) refuses(err error) bool {
	if apierrors.IsNotAcceptable(err) || runtime.IsNotRegisteredError(err) {
		s.refused.Store(true)
	}
	return s.refused.Load()
}

// ListWithContext makes a list.
func (s *metadataSource) ListWithContext(
	ctx context.Context, o metav1.ListOptions,
) (runtime.Object, error) {
	if s.refused.Load() {
		return s.whole.ListWithContext(ctx, o)
	}
	result := s.rest.get(o).SetHeader("Accept", acceptShortList).Do(ctx)
	err := result.Error()
	var list runtime.Object
	if err == nil {
		list, err = result.Get()
	}
	switch {
	case err == nil:
	case s.refuses(err):
		return s.whole.ListWithContext(ctx, o)
	default:
		return nil, err
	}
	if _, ok := list.(*metav1.PartialObjectMetadataList); !ok {
		return nil, fmt.Errorf("asked for a list of metadata, got a %T", list)
	}
	return list, nil
}

// WatchWithContext starts a watch.
func (s *metadataSource) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	if s.refused.Load() {
		return s.whole.WatchWithContext(ctx, o)
	}
	o.Watch = true
	w, err := s.rest.get(o).SetHeader("Accept", acceptShort).Watch(ctx)
	if err != nil && s.refuses(err) {
		return s.whole.WatchWithContext(ctx, o)
	}
	return w, err
}
