package kates

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/accumulator/stream"
)

// gone reports whether the error of a list or watch certainly means that nothing is left to watch.
// In doubt it is false, and what is shown stays (G8).
func (c *core) gone(ctx context.Context, r stream.Resource, namespace string, err error) bool {
	if apierrors.IsNotFound(err) {
		served, err := c.kinds.Serves(ctx, r.GroupResource())
		return err == nil && !served
	}
	// The rights within a namespace are deleted with it, so a list there is forbidden. This get is
	// forbidden, too, unless a cluster role allows it: then nobody can tell, and what is shown
	// stays.
	if namespace == "" || !apierrors.IsForbidden(err) {
		return false
	}
	namespaces := c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	_, err = namespaces.Get(ctx, namespace, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}
