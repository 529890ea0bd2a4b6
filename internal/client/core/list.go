package core

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// PageSize is that of lists, and of the first pages of streams. PageMost is that of their other
// pages, at most.
const (
	PageSize = source.PageSize
	PageMost = source.PageMost
)

// List makes one list, in pages.
func (c *Core) List(ctx context.Context, r objects.Resource, s objects.Spec) ([]*unstructured.Unstructured, error) {
	in := wire.In(c.Dynamic, r, s.Namespace)
	items := []*unstructured.Unstructured{}
	o := metav1.ListOptions{Limit: PageSize}
	if s.Labels != nil {
		o.LabelSelector = s.Labels.String()
	}
	if s.Fields != nil {
		o.FieldSelector = s.Fields.String()
	}
	list := func(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
		page, err := in.List(ctx, o)
		if err != nil {
			return metav1.ListMeta{}, err
		}
		return source.EachItem(page, put)
	}
	_, err := source.Pages(ctx, list, o, func() func(runtime.Object) error {
		items = []*unstructured.Unstructured{}
		return func(item runtime.Object) error {
			u := item.(*unstructured.Unstructured)
			selected := c.Fake == nil || fake.Selects(r, s.Selection, u) // it ignores fields
			if selected && objects.SelectsAlternative(r, s, u) {
				items = append(items, u)
			}
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// ListAll makes all lists that a query needs.
func (c *Core) ListAll(ctx context.Context, r objects.Resource, q query.Query) ([]*unstructured.Unstructured, error) {
	watches := q.Watches(r)
	for _, w := range watches {
		w.Form = objects.Whole // that is what is listed
		if err := objects.Unjudged(r, w); err != nil {
			return nil, err
		}
	}
	if len(watches) == 1 && q.Spaces == nil {
		return c.List(ctx, r, watches[0])
	}
	var spaces map[string]bool
	if q.Spaces != nil {
		namespaces := objects.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("namespaces")}
		selected, err := c.List(ctx, namespaces, objects.Spec{Selection: objects.Selection{Labels: q.Spaces.Labels}})
		if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		spaces = make(map[string]bool)
		for _, ns := range selected {
			spaces[ns.GetName()] = true
		}
	}
	found := []*unstructured.Unstructured{}
	for _, w := range watches {
		items, err := c.List(ctx, r, w)
		if err != nil {
			return nil, err
		}
		for _, u := range items {
			if spaces == nil || spaces[u.GetNamespace()] {
				found = append(found, u)
			}
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return objects.Compare(objects.KeyOf(a), objects.KeyOf(b)) })
	return found, nil
}
