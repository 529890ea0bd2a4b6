package kinds

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// LacksSubresource reports whether the server serves a resource, and not this subresource of it.
// It asks the server each time. Where that cannot be known, it is false.
func (r *Resolver) LacksSubresource(
	ctx context.Context, gvr schema.GroupVersionResource, subresource string,
) bool {
	if r.disco == nil {
		return false
	}
	client := r.disco.RESTClient()
	if client == nil {
		return false // a fake
	}
	gv := gvr.GroupVersion().String()
	list, err := discovery.NewDiscoveryClient(client).ServerResourcesForGroupVersionWithContext(ctx, gv)
	if err != nil {
		return false
	}
	served := false
	for i := range list.APIResources {
		switch list.APIResources[i].Name {
		case gvr.Resource:
			served = true
		case gvr.Resource + "/" + subresource:
			return false
		}
	}
	return served
}
