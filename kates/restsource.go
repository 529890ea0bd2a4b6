package kates

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/accumulator"
)

// restSource lists and watches a resource over REST, as untyped objects. Requests are not
// retried here, as client-go would do ten times over where the server answers 429 or 5xx with a
// Retry-After: who lists and watches takes its advice too, and has the server's message in the
// status meanwhile.
type restSource struct {
	client    rest.Interface
	resource  accumulator.Resource
	namespace string
}

// Within is the source for one namespace.
func (s *restSource) Within(namespace string) cache.ListerWatcherWithContext {
	return &restSource{s.client, s.resource, namespace}
}

var (
	optionsVersion = schema.GroupVersion{Version: "v1"}
	optionsCodec   = func() runtime.ParameterCodec {
		s := runtime.NewScheme()
		metav1.AddToGroupVersion(s, optionsVersion)
		return runtime.NewParameterCodec(s)
	}()
)

func (s *restSource) get(o metav1.ListOptions) *rest.Request {
	return s.client.Get().AbsPath(resourcePath(s.resource, s.namespace)...).
		SpecificallyVersionedParams(&o, optionsCodec, optionsVersion).MaxRetries(0)
}

// ListWithContext lists, as the options say.
func (s *restSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := &unstructured.UnstructuredList{}
	if err := s.get(o).Do(ctx).Into(list); err != nil {
		return nil, err
	}
	return list, nil
}

// WatchWithContext watches, as the options say.
func (s *restSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return s.get(o).Watch(ctx)
}

// metadataSource lists and watches the metadata of a resource's objects. From a server that cannot
// shorten them, as some aggregated ones, it gets them whole.
type metadataSource struct {
	rest    restSource
	whole   *restSource
	refused atomic.Bool
}

// Within is the source for one namespace.
func (s *metadataSource) Within(namespace string) cache.ListerWatcherWithContext {
	whole := restSource{s.whole.client, s.rest.resource, namespace}
	one := &metadataSource{rest: restSource{s.rest.client, s.rest.resource, namespace}, whole: &whole}
	one.refused.Store(s.refused.Load())
	return one
}

func metadataClient(config *rest.Config, hc *http.Client) (rest.Interface, error) {
	config = metadata.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	return rest.RESTClientForConfigAndClient(config, hc)
}

// Whole objects are not among what is accepted: a server that cannot do better is to say so.
const (
	acceptShort = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptShortList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Form is metadata alone, until the server says that it cannot.
func (s *metadataSource) Form() accumulator.Form {
	if s.refused.Load() {
		return accumulator.Whole
	}
	return accumulator.Metadata
}

// refuses notes a server that cannot shorten: it says so, or sends what it was not asked for.
func (s *metadataSource) refuses(err error) bool {
	if apierrors.IsNotAcceptable(err) || runtime.IsNotRegisteredError(err) {
		s.refused.Store(true)
	}
	return s.refused.Load()
}

// ListWithContext lists, as the options say.
func (s *metadataSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
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

// WatchWithContext watches, as the options say.
func (s *metadataSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
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

// resourcePath is the path of a resource in the API, across namespaces if none is given.
func resourcePath(r accumulator.Resource, namespace string) []string {
	path := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"api", r.Version}
	}
	if r.Namespaced && namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, r.Resource)
}
