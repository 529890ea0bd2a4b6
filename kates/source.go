package kates

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/accumulator"
)

// dynamicSource lists and watches a resource as untyped objects.
type dynamicSource struct{ in dynamic.ResourceInterface }

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
