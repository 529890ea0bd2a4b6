package withruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kates-go/kates/bench/internal/operator/api"
)

// Apply sends each object by server-side apply. The server finds out what differs.
func Apply(ctx context.Context, c client.Client, app *api.App, wanted api.Objects) error {
	for _, o := range api.Listed[client.Object](wanted) {
		if err := controllerutil.SetControllerReference(app, o, c.Scheme()); err != nil {
			return err
		}
		gvk, err := apiutil.GVKForObject(o, c.Scheme())
		if err != nil {
			return err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(gvk)
		delete(u.Object, "status")
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership); err != nil {
			return err
		}
	}
	return nil
}
