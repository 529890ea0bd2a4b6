package wire

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// Dynamic sends requests through a dynamic.Interface, which has whole untyped objects only and
// does not show the answer to a delete.
type Dynamic struct{ Client dynamic.Interface }

// Source lists and watches a resource. The form is always whole objects.
func (d Dynamic) Source(r objects.Resource, namespace string, _ objects.Form) source.Source {
	return &dynamicSource{in: In(d.Client, r, namespace), client: d.Client, resource: r}
}

// Delete reads the object before it deletes it, for its UID. What became of it is unknown.
func (d Dynamic) Delete(
	ctx context.Context, at Address, o metav1.DeleteOptions,
) (Deletion, error) {
	in := In(d.Client, at.Resource, at.Namespace)
	before, err := in.Get(ctx, at.Name, metav1.GetOptions{})
	if err != nil {
		return Deletion{}, err
	}
	answer := Deletion{UID: before.GetUID(), Unknown: true}
	return answer, in.Delete(ctx, at.Name, o)
}

// Apply sends a server-side apply. The answer does not say whether the object was created.
func (d Dynamic) Apply(
	ctx context.Context, at Address, data []byte, o metav1.PatchOptions,
) (*unstructured.Unstructured, bool, error) {
	in := In(d.Client, at.Resource, at.Namespace)
	got, err := in.Patch(ctx, at.Name, types.ApplyPatchType, data, o)
	return got, false, err
}

// In is a dynamic client for a resource, in one namespace or, if that is empty, in all.
func In(d dynamic.Interface, r objects.Resource, namespace string) dynamic.ResourceInterface {
	if r.Namespaced && namespace != "" {
		return d.Resource(r.GroupVersionResource).Namespace(namespace)
	}
	return d.Resource(r.GroupVersionResource)
}

// dynamicSource lists and watches a resource as untyped objects.
type dynamicSource struct {
	in       dynamic.ResourceInterface
	client   dynamic.Interface
	resource objects.Resource
	source.Untyped
}

func (s *dynamicSource) Within(namespace string) source.Source {
	return Dynamic{s.client}.Source(s.resource, namespace, objects.Whole)
}

// Form is whole objects, whatever was asked for.
func (*dynamicSource) Form() objects.Form { return objects.Whole }

func (s *dynamicSource) ListItems(
	ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error,
) (metav1.ListMeta, error) {
	list, err := s.in.List(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	return source.EachItem(list, put)
}

func (s *dynamicSource) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	return s.in.Watch(ctx, o)
}
