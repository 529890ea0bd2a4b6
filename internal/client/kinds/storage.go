package kinds

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Storage identifies the storage of a resource: two resources with the same storage show the same
// objects. All versions of a resource share one. So do resources of several groups that have the
// same storageVersionHash, like the events of the core group and of events.k8s.io. The identity is
// a group and resource and not the hash, because the hash changes when the server is upgraded.
//
// Storage may ask the server, once per resource whose name is in several groups. If that fails,
// the resource counts as its own storage, and the next call asks again.
func (r *Resolver) Storage(ctx context.Context, gvr schema.GroupVersionResource) string {
	own := gvr.GroupResource()
	r.mu.Lock()
	known, ok := r.canonical[own]
	r.mu.Unlock()
	if ok {
		return known.String()
	}
	all, _ := r.current(ctx)
	shared, certain := r.sameStorage(ctx, all, own)
	r.mu.Lock()
	defer r.mu.Unlock()
	identity := own
	for _, resource := range shared {
		if earlier, ok := r.canonical[resource]; ok {
			identity = earlier // it is already in use
			break
		}
		if resource.Group < identity.Group {
			identity = resource
		}
	}
	if certain {
		r.canonical[own] = identity
	}
	return identity.String()
}

// sameStorage returns the resources that share own's storage, with own itself, as far as discovery
// tells. certain says that discovery was complete.
func (r *Resolver) sameStorage(
	ctx context.Context, all *served, own schema.GroupResource,
) (same []schema.GroupResource, certain bool) {
	// All versions of a resource have one hash, so the first of each group will do.
	namesakes := map[string]*servedResource{}
	for i := range all.resources {
		candidate := &all.resources[i]
		if candidate.gvr.Resource == own.Resource && namesakes[candidate.gvr.Group] == nil {
			namesakes[candidate.gvr.Group] = candidate
		}
	}
	same = []schema.GroupResource{own}
	certain = all.complete()
	if len(namesakes) < 2 || namesakes[own.Group] == nil {
		return same, certain
	}
	hash, known := r.storageHash(ctx, namesakes[own.Group])
	if certain = certain && known; hash == "" {
		return same, certain
	}
	for group, candidate := range namesakes {
		if group == own.Group {
			continue
		}
		other, known := r.storageHash(ctx, candidate)
		certain = certain && known
		if other == hash {
			same = append(same, candidate.gvr.GroupResource())
		}
	}
	return same, certain
}

// storageHash returns a resource's storageVersionHash. Aggregated discovery, which clients use by
// default, does not have it; the older form does.
func (r *Resolver) storageHash(
	ctx context.Context, resource *servedResource,
) (hash string, known bool) {
	if resource.hash != "" {
		return resource.hash, true
	}
	client := r.disco.RESTClient()
	if client == nil {
		return "", true // a fake
	}
	gv := resource.gvr.GroupVersion().String()
	list, err := discovery.NewDiscoveryClient(client).ServerResourcesForGroupVersionWithContext(ctx, gv)
	if err != nil {
		return "", false
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == resource.gvr.Resource {
			return list.APIResources[i].StorageVersionHash, true
		}
	}
	return "", true
}
