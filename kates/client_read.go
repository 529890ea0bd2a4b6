package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/write"
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
	if err := c.core.CheckTarget(target); err != nil {
		return err
	}
	o, err := c.core.SubjectOf(ctx, resource)
	if err == nil {
		err = cmp.Or(o.CheckName(), c.core.FitsTarget(target, o.Resource.Kind), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	got, err := c.core.Get(ctx, o)
	if err != nil {
		return o.Failed(write.OpGet, err)
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
//	web, err := kates.GetCached[corev1.Service](ctx, client, "prod", "web")
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
		if o == nil {
			return nil, errors.New("get: an option is nil")
		}
		o(&settings)
	}
	o, err := c.core.SubjectNamed(ctx, reflect.TypeFor[T](), settings.kind, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	result := new(T)
	if err := c.core.ReadCached(ctx, o, result); err != nil {
		return nil, o.Failed(write.OpGet, err)
	}
	return result, nil
}

// List reads the objects of a query from the server into target: a pointer to a slice (of
// *Service, Service, *Unstructured, map[string]any, …), a map by name, or a list type such as
// *corev1.ServiceList. A Go type of another kind or version than the query's is an error. It is
// replaced, not added to, and untouched on error. An empty namespace lists all namespaces. Long
// lists are fetched in pages. A List does not change what watches show.
func (c *Client) List(ctx context.Context, query Query, target any) error {
	if err := jsonform.CheckListTarget(target); err != nil {
		return plain.While("list", err)
	}
	r, items, err := c.compiler().List(ctx, write.OpList, query.wanted())
	if err != nil {
		return err
	}
	if err := c.core.FitsTarget(target, r.Kind); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	return jsonform.FillList(target, items)
}
