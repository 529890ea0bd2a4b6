package kates

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/accumulator"
)

// source lists and watches a resource in a form: over REST where there is that, which alone can
// ask for other forms than whole objects.
func (c *core) source(r accumulator.Resource, namespace string, form accumulator.Form) cache.ListerWatcherWithContext {
	if c.rest == nil {
		return &dynamicSource{within(c.dynamic, r, namespace), c.dynamic, r}
	}
	whole := &restSource{c.rest, r, namespace}
	switch form {
	case accumulator.Metadata:
		return &metadataSource{rest: restSource{c.metadata, r, namespace}, whole: whole}
	case accumulator.Typed:
		if typed, ok := c.typedSource(r, namespace); ok {
			return typed
		}
	}
	return whole
}

// dynamicSource lists and watches a resource as untyped objects, for clients made of a
// dynamic.Interface.
type dynamicSource struct {
	in       dynamic.ResourceInterface
	client   dynamic.Interface
	resource accumulator.Resource
}

// Within is the source for one namespace.
func (s *dynamicSource) Within(namespace string) cache.ListerWatcherWithContext {
	return &dynamicSource{within(s.client, s.resource, namespace), s.client, s.resource}
}

// Form is whole objects, whatever was asked for.
func (*dynamicSource) Form() accumulator.Form { return accumulator.Whole }

// ListWithContext lists, as the options say.
func (s *dynamicSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := s.in.List(ctx, o)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// WatchWithContext watches, as the options say.
func (s *dynamicSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return s.in.Watch(ctx, o)
}

// within is the dynamic client for a resource, in a namespace or across all.
func within(d dynamic.Interface, r accumulator.Resource, namespace string) dynamic.ResourceInterface {
	if r.Namespaced && namespace != "" {
		return d.Resource(r.GroupVersionResource).Namespace(namespace)
	}
	return d.Resource(r.GroupVersionResource)
}

func (c *Client) in(r accumulator.Resource, namespace string) dynamic.ResourceInterface {
	return within(c.core.dynamic, r, namespace)
}
