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

// Delete deletes an object. Without finalizers the object is gone.
func (s *Server) Delete(ctx context.Context, at wire.Address, o metav1.DeleteOptions) (wire.Deletion, error) {
	return wire.Deletion{}, wire.In(s.client, at.Resource, at.Namespace).Delete(ctx, at.Name, o)
}

// Apply sends a server-side apply, which only a reactor answers otherwise than by an error.
func (s *Server) Apply(
	ctx context.Context, at wire.Address, data []byte, o metav1.PatchOptions,
) (*unstructured.Unstructured, bool, error) {
	return wire.Dynamic{Client: s.client}.Apply(ctx, at, data, o)
}
