package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/jsonform"
	"github.com/kates-go/kates/internal/wire"
)

// A GetOption changes one [Get].
type GetOption func(*getSettings)

type getSettings struct{ kind string }

// OfKind says which kind a [Get] is about, by whatever name kubectl takes, where the Go type does not.
func OfKind(kind string) GetOption { return func(s *getSettings) { s.kind = kind } }

// Get returns the object of that name.
//
//	web, err := kates.Get[kates.Service](ctx, client, "prod", "web")
//	host, err := kates.Get[map[string]any](ctx, client, "prod", "h", kates.OfKind("hosts.getambassador.io"))
//
// T is the form of the object: a Go type that the client's scheme knows, which says the kind, or [Unstructured],
// map[string]any, [PartialObjectMetadata], any struct with the right JSON, with [OfKind]. The namespace does not
// matter for kinds that have none; "" is the client's default namespace otherwise.
//
// Where a watch of this client is running that has the object, or has every object of the kind in the namespace
// and not this one, it answers, without a request. It has to have as much of the object as T can hold, and no transform:
// for PartialObjectMetadata any watch will do; for the very Go type that the scheme knows for the kind, one of that type
// (a field of []*Service, see [Watch]), or an untyped one; for every other T an untyped one alone, since Go types lose
// the fields that they do not know. The managedFields may be missing from what a watch of a Go type or of metadata
// answers: those of Go types leave them out, unless the client keeps them ([WithManagedFields]); [Client.Get] has them
// always. Where another watch has shown that there is a newer version, or there is none of these, the server is asked. In both cases the
// client's own writes are in the answer (G4): what a write method has returned for is seen here, what was deleted
// is not. What others wrote is seen when the watch brings it, so that an answer of a watch that has just
// been started, and is late, may be older than one that the server gave before. [Client.Get] always asks the
// server.
//
// Where there is no such object, the error is that of the server ([IsNotFound]). What is returned is the caller's
// own, to write to and to keep; a reader ([Open]) returns shared objects without copying. Get is safe for
// concurrent use.
func Get[T any](ctx context.Context, c *Client, namespace, name string, opts ...GetOption) (*T, error) {
	var settings getSettings
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
		if got, err = c.in(o.resource, o.GetNamespace()).Get(ctx, name, getOptions); err == nil {
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

// partFor is how much of an object a type can hold.
func (c *Client) partFor(t reflect.Type, r accumulator.Resource) stream.Part {
	if t == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return stream.Meta
	}
	if of, ok := wire.TypeOf(c.core.scheme, r.Kind); ok && of == t && t != reflect.TypeFor[Unstructured]() {
		return stream.Known
	}
	return stream.All
}

// named is what is to be read: the object of a name, whose kind the Go type says, or the caller.
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

// kindFor is an empty object of the kind. Where both the type and the caller say one, they must agree.
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

// kindsOf are the kinds that a Go type is registered for; none for one that holds objects of any kind.
func (c *Client) kindsOf(t reflect.Type) []schema.GroupVersionKind {
	typed, ok := reflect.New(t).Interface().(runtime.Object)
	if _, partial := typed.(*metav1.PartialObjectMetadata); !ok || partial || t == reflect.TypeFor[Unstructured]() {
		return nil
	}
	gvks, _, err := c.core.scheme.ObjectKinds(typed)
	if err != nil {
		return nil
	}
	return gvks
}

// fits is an error if a Go type is that of another kind, or of another version, than the one of an object.
func (c *Client) fits(t reflect.Type, kind schema.GroupVersionKind) error {
	gvks := c.kindsOf(t)
	if len(gvks) == 0 || slices.Contains(gvks, kind) {
		return nil
	}
	return fmt.Errorf("%s is %s, not %s", t, gvks[0], kind)
}

// fitsTarget is fits for what a target can hold: the object, or each of a list of them.
func (c *Client) fitsTarget(target any, kind schema.GroupVersionKind) error {
	if target == nil {
		return nil
	}
	t := reflect.TypeOf(target)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if jsonform.IsTypedList(t) && len(c.kindsOf(t)) > 0 { // a kind may have Items of its own
		if items, _ := t.FieldByName("Items"); strings.HasSuffix(c.kindsOf(t)[0].Kind, "List") {
			t = items.Type
		}
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return c.fits(t, kind)
}

// fillFrom is fill from what a stream shows, whatever its form.
func fillFrom(target any, shown accumulator.Object) error {
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
