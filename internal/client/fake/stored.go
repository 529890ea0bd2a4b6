package fake

import (
	"context"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// Stored drops from the status of a built-in kind what the kind's Go type does not know, because a
// server does. The fake has no schemas of other kinds.
func Stored(kind schema.GroupVersionKind, o *unstructured.Unstructured) *unstructured.Unstructured {
	if o.Object["status"] == nil || !OfKubernetes(kind) {
		return o
	}
	typed, err := scheme.Scheme.New(kind)
	if err != nil {
		return o
	}
	convert := runtime.DefaultUnstructuredConverter
	if convert.FromUnstructured(map[string]any{"status": o.Object["status"]}, typed) != nil {
		return o // a value of another kind is none that the server drops
	}
	known, err := convert.ToUnstructured(typed)
	if err != nil {
		return o
	}
	kept := maps.Clone(o.Object)
	kept["status"] = patch.Kept(o.Object["status"], known["status"])
	return &unstructured.Unstructured{Object: kept}
}

// OfKubernetes reports whether a kind is built into Kubernetes, so that its Go type is the
// server's. Programs add types of their own to client-go's scheme.
func OfKubernetes(kind schema.GroupVersionKind) bool {
	t := scheme.Scheme.AllKnownTypes()[kind]
	return t != nil && strings.HasPrefix(t.PkgPath(), "k8s.io/api/")
}

// Requests are those that a plain dynamic client does not do, of a fake: what it lists and watches
// has versions.
type Requests struct {
	wire.Dynamic
	Versions *Server
}

// Source lists and watches a resource, with versions.
func (f Requests) Source(r object.Resource, namespace string, _ object.Form) source.Source {
	return f.Versions.Source(r, namespace)
}

// Delete deletes an object. Without finalizers the object is gone.
func (f Requests) Delete(ctx context.Context, at wire.Address, o metav1.DeleteOptions) (wire.Deletion, error) {
	return wire.Deletion{}, wire.In(f.Client, at.Resource, at.Namespace).Delete(ctx, at.Name, o)
}
