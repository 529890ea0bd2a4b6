package kates

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/jsonform"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/wire"
)

// List reads the objects of a query from the server into target: a pointer to a slice (of
// *Service, Service, *Unstructured, map[string]any, …), a map by name, or a list type such as
// *corev1.ServiceList. A Go type of another kind or version than the query's is an error. It is
// replaced, not added to, and untouched on error. An empty namespace lists all namespaces. Long
// lists are fetched in pages. A List does not change what watches show.
func (c *Client) List(ctx context.Context, query Query, target any) error {
	if err := jsonform.CheckListTarget(target); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	r, items, err := c.list(ctx, opList, query)
	if err == nil {
		if err = c.fitsTarget(target, r.Kind); err != nil {
			err = fmt.Errorf("list: %w", err)
		}
	}
	if err != nil {
		return err
	}
	return jsonform.FillList(target, items)
}

// pageSize of lists.
const pageSize = 500

// list reads all objects of a query from the server. They are in the server's order or, if that
// takes several lists, ordered by namespace and name.
func (c *Client) list(ctx context.Context, op operation, q Query) (stream.Resource, []*Unstructured, error) {
	var none stream.Resource
	compiled, err := c.compileOne(target{Query: q})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return none, nil, fmt.Errorf("%s %s: %w", op, q.Kind, err)
	}
	mapping, err := c.core.kinds.Kind(ctx, q.Kind)
	if err != nil {
		return none, nil, fmt.Errorf("%s: %w", op, err)
	}
	r := c.resource(ctx, mapping)
	if err := cmp.Or(q.suits(r), c.core.server.checkList(r, q)); err != nil {
		return none, nil, fmt.Errorf("%s: %w", op, err)
	}
	items, err := c.listAll(ctx, r, compiled)
	if err != nil {
		return none, nil, fmt.Errorf("%s %s: %w", op, r.Resource, err)
	}
	return r, items, nil
}

// listAll makes all lists that a query needs.
func (c *Client) listAll(ctx context.Context, r stream.Resource, q query.Query) ([]*Unstructured, error) {
	watches := q.Watches(r)
	if len(watches) == 1 && q.Spaces == nil {
		return c.listOne(ctx, r, watches[0].Namespace, watches[0].Selection)
	}
	var spaces map[string]bool
	if q.Spaces != nil {
		namespaces := stream.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("namespaces")}
		selected, err := c.listOne(ctx, namespaces, "", stream.Selection{Labels: q.Spaces.Labels})
		if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		spaces = make(map[string]bool)
		for _, ns := range selected {
			spaces[ns.GetName()] = true
		}
	}
	found := make(map[stream.Key]*Unstructured)
	for _, w := range watches {
		items, err := c.listOne(ctx, r, w.Namespace, w.Selection)
		if err != nil {
			return nil, err
		}
		for _, u := range items {
			key := objects.KeyOf(u)
			if old := found[key]; old != nil && !coherence.Newer(u.GetResourceVersion(), old.GetResourceVersion()) {
				continue
			}
			if spaces == nil || spaces[key.Namespace] {
				found[key] = u
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *Unstructured) int {
		return objects.Compare(objects.KeyOf(a), objects.KeyOf(b))
	}), nil
}

// listOne makes one list, in pages. If the version of the pages expires meanwhile, it starts again
// with one page for everything.
func (c *Client) listOne(ctx context.Context, r stream.Resource, namespace string, s stream.Selection) ([]*Unstructured, error) {
	in := wire.In(c.core.dynamic, r, namespace)
	items := []*Unstructured{}
	o := metav1.ListOptions{Limit: pageSize}
	if s.Labels != nil {
		o.LabelSelector = s.Labels.String()
	}
	if s.Fields != nil {
		o.FieldSelector = s.Fields.String()
	}
	for {
		page, err := in.List(ctx, o)
		if o.Continue != "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
			o.Continue, o.Limit = "", 0
			items = []*Unstructured{}
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if u := &page.Items[i]; c.core.server.selects(r, s, u) {
				items = append(items, u)
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return items, nil
		}
	}
}
