package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// Get reads one object from the server into target. The resource says which: an
// object of any form with a kind and a name; a namespaced one without a namespace is
// looked for in the client's default namespace.
//
// The target is nil, a pointer, or a pointer to a pointer, which gets a fresh object. It is zeroed
// before it is filled, and untouched on error. A Go type of another kind or version than the
// resource's is an error: it would lose what it does not know. In a struct of one's own, a field
// of type any has its numbers as float64, as encoding/json gives them, which is not exact for
// integers past 2^53. A Get does not change what watches show.
func (c *Client) Get(ctx context.Context, resource, target any) error {
	if err := c.checkTarget(target); err != nil {
		return err
	}
	o, err := c.object(ctx, resource)
	if err == nil {
		err = cmp.Or(o.named(), c.fitsTarget(target, o.resource.Kind), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	got, err := c.core.get(ctx, o)
	if err != nil {
		return o.failed(opGet, err)
	}
	return jsonform.Fill(target, got)
}

// A CachedOption changes one [GetCached].
type CachedOption func(*cachedSettings)

type cachedSettings struct{ kind string }

// OfKind names the kind of a [GetCached], in any form that kubectl takes, if the Go type does not
// tell it.
func OfKind(kind string) CachedOption { return func(s *cachedSettings) { s.kind = kind } }

// GetCached returns the object of that name.
//
//	web, err := kates.GetCached[kates.Service](ctx, client, "prod", "web")
//	host, err := kates.GetCached[map[string]any](ctx, client, "prod", "h", kates.OfKind("hosts.getambassador.io"))
//
// T is the form of the object: a Go type that the client's scheme knows, which says the kind, or
// [Unstructured], map[string]any, [PartialObjectMetadata], any struct with the right JSON, with
// [OfKind]. The namespace does not matter for kinds that have none; "" is the client's default
// namespace otherwise.
//
// A running watch of this client answers, without a request, if it has the object, or if it has
// every other object of the kind in the namespace. It must hold as much of the object as T can,
// and have no transform. For PartialObjectMetadata any watch will do. For the Go type that the
// scheme knows for the kind it must be a watch of that type (a field of []*Service, see [Watch])
// or an untyped one. For every other T it must be an untyped one, because Go types lose the fields
// that they do not know. The answer of a watch of a Go type or of metadata may lack the
// managedFields: watches of Go types drop them, unless the client keeps them
// ([WithManagedFields]). [Client.Get] always has them.
//
// The server is asked if there is no such watch, or if another watch has shown a newer version. In
// both cases the answer contains the client's own writes (G4): an object that a write method has
// written is as written, one that was deleted is absent. The writes of others are seen when the
// watch brings them. So the answer of a watch that was just started, and is late, may be older
// than one that the server gave before. [Client.Get] always asks the server.
//
// If there is no such object, the error is that of the server ([IsNotFound]). The result is the
// caller's own, to write to and to keep; a lister ([NewLister]) returns shared objects without
// copying. GetCached is safe for concurrent use.
func GetCached[T any](ctx context.Context, c *Client, namespace, name string, opts ...CachedOption) (*T, error) {
	if c == nil {
		return nil, fmt.Errorf("get: %w", errNoClient)
	}
	var settings cachedSettings
	for _, o := range opts {
		o(&settings)
	}
	o, err := c.named(ctx, reflect.TypeFor[T](), settings.kind, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	result := new(T)
	known, ok := c.core.streams.Lookup(o.resource, o.key(), c.partFor(reflect.TypeFor[T](), o.resource))
	switch {
	case !ok:
		var got *Unstructured
		if got, err = c.core.get(ctx, o); err == nil {
			err = jsonform.Fill(result, got)
		}
	case known == nil:
		err = apierrors.NewNotFound(o.resource.GroupResource(), name)
	default:
		err = fillFrom(result, known)
	}
	if err != nil {
		return nil, o.failed(opGet, err)
	}
	return result, nil
}

// partFor says how much of an object a type can hold.
func (c *Client) partFor(t reflect.Type, r objects.Resource) intake.Part {
	if t == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return intake.Meta
	}
	if of, ok := wire.TypeOf(c.core.scheme, r.Kind); ok && of == t && t != reflect.TypeFor[Unstructured]() {
		return intake.Known
	}
	return intake.All
}

// named returns the object to be read. Its kind comes from the Go type, or from the caller.
func (c *Client) named(ctx context.Context, t reflect.Type, kind, namespace, name string) (*object, error) {
	if err := jsonform.CheckTarget(reflect.New(t).Interface()); err != nil {
		return nil, err
	}
	u, err := c.kindFor(ctx, t, kind)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("a %s without a name", u.GetKind())
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	o, err := c.object(ctx, u)
	return o, cmp.Or(err, ctx.Err())
}

// kindFor returns an empty object of the kind. If the type and the caller both name one, they must
// agree.
func (c *Client) kindFor(ctx context.Context, t reflect.Type, kind string) (*Unstructured, error) {
	u := &Unstructured{Object: map[string]any{}}
	if gvks := c.kindsOf(t); len(gvks) > 0 {
		u.SetGroupVersionKind(gvks[0])
	}
	if kind == "" {
		if u.GetKind() == "" {
			return nil, fmt.Errorf("%s does not say a kind that the client's scheme knows: use OfKind", t)
		}
		return u, nil
	}
	mapping, err := c.core.kinds.Kind(ctx, kind)
	switch {
	case err != nil:
		return nil, err
	case u.GetKind() != "" && u.GroupVersionKind() != mapping.GroupVersionKind:
		return nil, fmt.Errorf("%s is %s, not %q (%s)", t, u.GroupVersionKind(), kind, mapping.GroupVersionKind)
	}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	return u, nil
}

// fillFrom is fill from an object of a stream, in any form.
func fillFrom(target any, shown objects.Object) error {
	if u, ok := shown.(*Unstructured); ok {
		return jsonform.Fill(target, u)
	}
	if reflect.TypeOf(shown) == reflect.TypeOf(target) {
		reflect.ValueOf(target).Elem().Set(reflect.ValueOf(shown.DeepCopyObject()).Elem())
		return nil
	}
	u, err := jsonform.ToUnstructured(nil, shown)
	if err != nil {
		return err
	}
	if u.GetKind() == "" {
		return errors.New("what a watch shows has no kind")
	}
	return jsonform.Fill(target, u)
}

// List reads the objects of a query from the server into target: a pointer to a slice (of
// *Service, Service, *Unstructured, map[string]any, …), a map by name, or a list type such as
// *corev1.ServiceList. A Go type of another kind or version than the query's is an error. It is
// replaced, not added to, and untouched on error. An empty namespace lists all namespaces. Long
// lists are fetched in pages. A List does not change what watches show.
func (c *Client) List(ctx context.Context, query Query, target any) error {
	if err := jsonform.CheckListTarget(target); err != nil {
		return plain.Error(fmt.Errorf("list: %w", err))
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
func (c *Client) list(ctx context.Context, op operation, q Query) (objects.Resource, []*Unstructured, error) {
	var none objects.Resource
	compiled, err := c.compileOne(target{Query: q})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return none, nil, plain.Error(fmt.Errorf("%s %s: %w", op, q.Kind, err))
	}
	r, items, err := c.listAs(ctx, op, q, compiled)
	if !misplaced(err) && !errors.Is(err, query.ErrUnfit) && !slices.ContainsFunc(items, func(u *Unstructured) bool {
		return r.Check(u) != nil
	}) {
		return r, items, err
	}
	c.core.kinds.Refresh(ctx)
	if mapping, lookup := c.core.kinds.Kind(ctx, q.Kind); lookup != nil || c.resource(ctx, mapping).Serves(r) {
		return r, items, err
	}
	return c.listAs(ctx, op, q, compiled)
}

// listAs reads all objects of a query, as its kind is known to be served.
func (c *Client) listAs(
	ctx context.Context, op operation, q Query, compiled query.Query,
) (r objects.Resource, items []*Unstructured, err error) {
	mapping, err := c.core.kinds.Kind(ctx, q.Kind)
	if err != nil {
		return r, nil, plain.Error(fmt.Errorf("%s: %w", op, err))
	}
	r = c.resource(ctx, mapping)
	if err := cmp.Or(q.suits(r), c.core.server.checkList(r, q)); err != nil {
		return r, nil, plain.Error(fmt.Errorf("%s: %w", op, err))
	}
	var unknown error
	if q.AnyOf != nil {
		unknown = c.readFields(ctx, &r, q)
	}
	items, err = c.listAll(ctx, r, compiled)
	if errors.Is(err, objects.ErrUnjudged) && unknown != nil {
		err = fmt.Errorf("%w: %w", err, unknown)
	}
	if err != nil {
		return r, nil, plain.Error(fmt.Errorf("%s %s: %w", op, r.Resource, err))
	}
	return r, items, nil
}

// listAll makes all lists that a query needs.
func (c *Client) listAll(ctx context.Context, r objects.Resource, q query.Query) ([]*Unstructured, error) {
	watches := q.Watches(r)
	for _, w := range watches {
		w.Form = objects.Whole // that is what is listed
		if err := objects.Unjudged(r, w); err != nil {
			return nil, err
		}
	}
	if len(watches) == 1 && q.Spaces == nil {
		return c.listOne(ctx, r, watches[0])
	}
	var spaces map[string]bool
	if q.Spaces != nil {
		namespaces := objects.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("namespaces")}
		selected, err := c.listOne(ctx, namespaces, objects.Spec{Selection: objects.Selection{Labels: q.Spaces.Labels}})
		if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		spaces = make(map[string]bool)
		for _, ns := range selected {
			spaces[ns.GetName()] = true
		}
	}
	found := []*Unstructured{}
	for _, w := range watches {
		items, err := c.listOne(ctx, r, w)
		if err != nil {
			return nil, err
		}
		for _, u := range items {
			if spaces == nil || spaces[u.GetNamespace()] {
				found = append(found, u)
			}
		}
	}
	slices.SortFunc(found, func(a, b *Unstructured) int { return objects.Compare(objects.KeyOf(a), objects.KeyOf(b)) })
	return found, nil
}

// listOne makes one list, in pages.
func (c *Client) listOne(ctx context.Context, r objects.Resource, s objects.Spec) ([]*Unstructured, error) {
	in := wire.In(c.core.dynamic, r, s.Namespace)
	items := []*Unstructured{}
	o := metav1.ListOptions{Limit: pageSize}
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
		items = []*Unstructured{}
		return func(item runtime.Object) error {
			if u := item.(*Unstructured); c.core.server.selects(r, s, u) {
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
