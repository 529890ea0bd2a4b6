package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Flatten makes one list of discovery's lists, of which there is one per group and version. Each
// resource gets the Group and Version under which it is served, unless it has its own (a
// subresource such as deployments/scale, whose kind is in another group). The result is a copy,
// ordered by group, version and name; discovery itself promises no order. It stays beside the
// error of a discovery that was incomplete.
func Flatten(lists []*metav1.APIResourceList, incomplete error) ([]metav1.APIResource, error) {
	var all []metav1.APIResource
	for _, list := range lists {
		if list == nil {
			continue
		}
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, errors.Join(Said(incomplete), fmt.Errorf("read discovery: %w", err))
		}
		for i := range list.APIResources {
			r := list.APIResources[i].DeepCopy()
			// A resource's own group may be "" (core), its own version never is.
			if r.Version == "" {
				r.Version = gv.Version
				if r.Group == "" {
					r.Group = gv.Group
				}
			}
			all = append(all, *r)
		}
	}
	slices.SortStableFunc(all, func(a, b metav1.APIResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Name, b.Name))
	})
	return all, errors.Join(Said(incomplete))
}
