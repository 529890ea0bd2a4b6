package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	objects "github.com/kates-go/kates/internal/object"
)

// place fills in what an object's kind says: how it is named, and the namespace.
func (c *Core) place(o *Subject, r objects.Resource) {
	o.Resource = r
	o.SetGroupVersionKind(r.Kind)
	namespace := ""
	if r.Namespaced {
		namespace = cmp.Or(o.given.namespace, c.Namespace)
	}
	o.SetNamespace(namespace)
}

// Moved reports whether err means that the kind of an object is served in another way than it was:
// the server answers so, and fresh discovery says so. Then the object is placed again, and the
// request may succeed now. The server has not begun what it has answered so.
func (c *Core) Moved(ctx context.Context, o *Subject, err error) bool {
	if o.given == nil || !Misplaced(err) {
		return false
	}
	r, changed := c.Served(ctx, o.given.kind, o.Resource)
	if changed {
		c.place(o, r)
	}
	return changed
}

// ServedOtherwise reports whether err means that a resource is served in another way by now.
func (c *Core) ServedOtherwise(ctx context.Context, r objects.Resource, err error) bool {
	if !Misplaced(err) {
		return false
	}
	_, changed := c.Served(ctx, r.Kind, r)
	return changed
}

// Served looks a kind up in fresh discovery. It reports whether it is served in another way.
func (c *Core) Served(
	ctx context.Context, kind schema.GroupVersionKind, was objects.Resource,
) (r objects.Resource, changed bool) {
	c.Kinds.Refresh(ctx)
	mapping, err := c.Kinds.GVK(ctx, kind)
	if err != nil {
		return r, false
	}
	r = c.Resource(ctx, mapping)
	return r, !r.Serves(was)
}

// Misplaced reports whether an error may be the answer to a request at a path that is not there,
// or about another kind. That an object is not there, or its namespace, is told with its name.
func Misplaced(err error) bool {
	if apierrors.IsMethodNotSupported(err) {
		return true
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch status := answer.Status(); {
	case apierrors.IsBadRequest(err):
		return ofAnotherKind(status.Message)
	case apierrors.IsNotFound(err):
		return status.Details == nil || status.Details.Name == "" || unexpected(status.Details)
	}
	return false
}

// ofAnotherKind reports whether a server has refused a body because the path is that of another
// kind or version. Most answers 400 are about the content, which discovery does not explain.
func ofAnotherKind(message string) bool {
	is, want, undecoded := strings.Cut(message, " cannot be handled as a ")
	kind, _, _ := strings.Cut(is, " ")
	return undecoded && !strings.HasPrefix(want, kind+":") || strings.Contains(message, " does not match the expected ")
}

// unexpected reports whether an answer was no Status, so that client-go has made one.
func unexpected(details *metav1.StatusDetails) bool {
	return slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// Gone reports whether the error of a list or watch certainly means that nothing is left to watch.
// In doubt it is false, and what is shown stays (G8). If the kind may be served in another way,
// discovery is read again.
func (c *Core) Gone(ctx context.Context, r objects.Resource, namespace string, err error) bool {
	if objects.Misplaced(err) {
		served, err := c.Kinds.Serves(ctx, r.GroupResource())
		return err == nil && !served
	}
	// The rights within a namespace are deleted with it, so a list there is forbidden. This get is
	// forbidden, too, unless a cluster role allows it: then nobody can tell, and what is shown
	// stays.
	if namespace == "" || !apierrors.IsForbidden(err) {
		return false
	}
	namespaces := c.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	_, err = namespaces.Get(ctx, namespace, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// Replaced reports whether the object of that UID is gone, or another one has its name.
func (c *Core) Replaced(ctx context.Context, o *Subject, uid types.UID) bool {
	now, err := c.Get(ctx, o)
	return apierrors.IsNotFound(err) || err == nil && now.GetUID() != uid
}
