package kates

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator"
)

// gone reports whether a list or watch was answered with err because there certainly is nothing
// left to watch. Anything less, and what is shown stays (G8).
func (c *core) gone(ctx context.Context, r accumulator.Resource, namespace string, err error) bool {
	if apierrors.IsNotFound(err) {
		served, err := c.resolver.serves(ctx, r.GroupResource())
		return err == nil && !served
	}
	// Rights within a namespace go with it, so a list of what was in it is forbidden. So is this get, unless a
	// cluster role grants it: then nobody can tell, and what is shown stays.
	if namespace == "" || !apierrors.IsForbidden(err) {
		return false
	}
	_, err = c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, namespace, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// serves reports whether the server serves a resource in any version, by complete discovery that is newer
// than the call, or, where the server may not be asked so often, as new as it can be.
func (r *resolver) serves(ctx context.Context, gr schema.GroupResource) (bool, error) {
	if r.disco == nil {
		return r.mapperKnows(ctx, gr)
	}
	all, fresh := r.current(ctx)
	if !fresh {
		all = r.refresh(ctx, all)
	}
	for i := range all.resources {
		if all.resources[i].gvr.GroupResource() == gr {
			return true, nil
		}
	}
	return false, all.doubt([]kindRequest{{group: gr.Group}})
}

func (r *resolver) mapperKnows(ctx context.Context, gr schema.GroupResource) (bool, error) {
	meta.MaybeResetRESTMapper(r.mapper)
	_, err := meta.ToRESTMapperWithContext(r.mapper).ResourcesForWithContext(ctx, gr.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}
