package kates

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/accumulator"
)

// gone reports whether a list or watch was answered with err because there certainly is nothing
// left to watch. Anything less, and what is shown stays (G8).
func (c *core) gone(ctx context.Context, r accumulator.Resource, namespace string, err error) bool {
	if apierrors.IsNotFound(err) {
		served, err := c.kinds.Serves(ctx, r.GroupResource())
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
