package wire

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// Requests are the requests that a plain dynamic client does not do, or whose answers it does not
// show. [Server] sends them over REST. [Dynamic] sends what comes closest.
type Requests interface {
	// Source lists and watches a resource. Its objects have the form that was asked for, or else
	// are whole. An empty namespace is all namespaces.
	Source(r objects.Resource, namespace string, form objects.Form) source.Source
	// Delete deletes one object.
	Delete(ctx context.Context, at Address, o metav1.DeleteOptions) (Deletion, error)
	// Apply sends a server-side apply. created says that the object certainly did not exist
	// before.
	Apply(
		ctx context.Context, at Address, data []byte, o metav1.PatchOptions,
	) (got *unstructured.Unstructured, created bool, err error)
}

// Address is the place of one object on a server.
type Address struct {
	Resource        objects.Resource
	Namespace, Name string
}

// path is the path of the object in the API.
func (a Address) path() []string { return append(path(a.Resource, a.Namespace), a.Name) }

// path is the path of a resource in the API, across all namespaces if none is given.
func path(r objects.Resource, namespace string) []string {
	path := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"api", r.Version}
	}
	if r.Namespaced && namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, r.Resource)
}

// Deletion is a server's answer to a delete.
type Deletion struct {
	// Object is the object in the answer, nil if the answer has none.
	Object *unstructured.Unstructured
	// UID is the UID of the deleted object, empty if the answer has none.
	UID types.UID
	// Unknown says that the answer does not tell what became of the object.
	Unknown bool
}
