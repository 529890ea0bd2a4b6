package trial

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/golden"
)

// state is the text of all objects of a server, without some.
func state(ctx context.Context, config *rest.Config, without func(Call) bool) (string, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil // no program reads deprecated kinds here
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("read the state of the server: %w", err)
	}
	reader, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("read the state of the server: %w", err)
	}
	served, err := found.ServerPreferredResources()
	if err != nil {
		return "", fmt.Errorf("read the state of the server: %w", err)
	}
	var all []map[string]any
	for _, group := range served {
		gv, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return "", fmt.Errorf("read the state of the server: %w", err)
		}
		for _, r := range group.APIResources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			list, err := reader.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return "", fmt.Errorf("read the state of the server: list %s: %w", r.Name, err)
			}
			for _, o := range list.Items {
				c := Call{Group: gv.Group, Resource: r.Name, Namespace: o.GetNamespace(), Name: o.GetName()}
				if !without(c) {
					all = append(all, o.Object)
				}
			}
		}
	}
	return golden.State(all)
}
