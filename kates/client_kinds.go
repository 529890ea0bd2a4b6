package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/kinds/selectable"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/loops/keyed"
	objects "github.com/kates-go/kates/internal/object"
)

// ErrIncompleteDiscovery is wrapped by the errors of look-ups that found no such kind while the
// server's discovery could not be read completely (an aggregated API that is down, a time-out, no
// rights): the server may serve the kind or not. It never means that a kind is absent;
// UnknownKindError does. If the server could not be reached, the text of such an error begins with
// that, and with the server's address.
var ErrIncompleteDiscovery = kinds.ErrIncompleteDiscovery

// UnknownKindError says that the server's complete discovery has no such kind. Its field Kind is
// the kind as it was asked for ("hosts.getambassador.io"). It unwraps to *meta.NoKindMatchError,
// so meta.IsNoMatchError holds. Use it with errors.As.
type UnknownKindError = kinds.UnknownKindError

// WaitFor returns when the server serves the kind, given as in [Query]. It returns ctx's error if
// ctx ends first. For a text that cannot be a kind ("", "a/b/c/d") it returns an error at once.
func (c *Client) WaitFor(ctx context.Context, kind string) error {
	if err := kinds.Check(kind); err != nil {
		return plain.Error(fmt.Errorf("wait for %q: %w", kind, err))
	}
	for {
		_, err := c.core.kinds.Kind(ctx, kind)
		if err == nil {
			return nil
		}
		keyed.Pause(ctx, time.Second, nil)
		if ctx.Err() != nil {
			return plain.Error(fmt.Errorf("wait for %q: %w (last: %w)", kind, ctx.Err(), err))
		}
	}
}

// Mapping returns the resource that a kind stands for, given as in [Query], and whether its
// objects are in namespaces. It asks discovery where that is not known yet. If complete discovery
// has no such kind, the error is an [UnknownKindError].
func (c *Client) Mapping(ctx context.Context, kind string) (*meta.RESTMapping, error) {
	mapping, err := c.core.kinds.Kind(ctx, kind)
	if err != nil {
		return nil, reach.First(fmt.Errorf("find %q: %w", kind, err))
	}
	return mapping, nil
}

// InvalidateCache forgets what discovery and OpenAPI said. The next use of a kind, or of a custom
// kind's field in a query, asks the server. An unknown kind does this by itself, and so does an
// answer which shows that a kind is served in another way; at most once a second.
func (c *Client) InvalidateCache() error { return c.core.kinds.Invalidate() }

// ServerVersion asks the server for its version.
func (c *Client) ServerVersion() (*VersionInfo, error) {
	if c.core.disco == nil {
		return nil, kinds.ErrNoDiscovery
	}
	version, err := c.core.disco.ServerVersion()
	return version, kinds.Said(err)
}

// ServerResources returns every resource that the server serves, in every version. If discovery
// was incomplete, it returns what it has, and an error.
func (c *Client) ServerResources() ([]APIResource, error) {
	if c.core.disco == nil {
		return nil, kinds.ErrNoDiscovery
	}
	_, lists, err := c.core.disco.ServerGroupsAndResources()
	return flattened(lists, err)
}

// ServerPreferredResources is like ServerResources, with each resource in the server's preferred
// version only.
func (c *Client) ServerPreferredResources() ([]APIResource, error) {
	if c.core.disco == nil {
		return nil, kinds.ErrNoDiscovery
	}
	lists, err := c.core.disco.ServerPreferredResources()
	return flattened(lists, err)
}

// RESTMapper returns what the client knows of kinds, in the form that other libraries take. It
// asks the mapper that the client was given, then discovery, and discovery again for an unknown
// kind, at most once a second. Its errors are those of the client: for an unknown kind,
// meta.IsNoMatchError holds; [ErrIncompleteDiscovery] says that this is not known.
//
// It implements meta.RESTMapperWithContext too.
func (c *Client) RESTMapper() meta.RESTMapper { return c.core.kinds.RESTMapper() }

// flattened makes one list of resources, and keeps it beside discovery's error.
func flattened(lists []*metav1.APIResourceList, err error) ([]APIResource, error) {
	all, ferr := kinds.Flatten(lists)
	return all, errors.Join(kinds.Said(err), ferr)
}

func (c *Client) resource(ctx context.Context, m *meta.RESTMapping) objects.Resource {
	return c.core.resource(ctx, m)
}

func (c *core) resource(ctx context.Context, m *meta.RESTMapping) objects.Resource {
	return objects.Resource{
		GroupVersionResource: m.Resource,
		Kind:                 m.GroupVersionKind,
		Namespaced:           m.Scope.Name() == meta.RESTScopeNameNamespace,
		Storage:              c.kinds.Storage(ctx, m.Resource),
		Field:                c.server.fields(selectable.BuiltIn(m.Resource)),
	}
}

// kindOf returns the kind that obj carries, or else the one that the client's scheme knows.
func (c *Client) kindOf(obj Object) schema.GroupVersionKind {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		if kinds, _, err := c.core.scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
			return kinds[0]
		}
	}
	return gvk
}

// kindless is an error if a value of the caller's has no kind: neither in itself, nor by its type.
func kindless(value any, gvk schema.GroupVersionKind) error {
	if gvk.Kind != "" {
		return nil
	}
	cure := "fill in its apiVersion and kind"
	if t := reflect.TypeOf(value); t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t != reflect.TypeFor[*Unstructured]() {
		cure += ", or register the type in the client's scheme (kates.WithScheme); a controller whose root is a plain struct has the object in Info.Root"
	}
	return fmt.Errorf("a %T without a kind: %s", value, cure)
}

// kindsOf returns the kinds that a Go type is registered for; none for a type that takes any kind.
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

// fits is an error if a Go type belongs to another kind or version than an object.
func (c *Client) fits(t reflect.Type, kind schema.GroupVersionKind) error {
	gvks := c.kindsOf(t)
	if len(gvks) == 0 || slices.Contains(gvks, kind) {
		return nil
	}
	return fmt.Errorf("%s is %s, not %s", t, gvks[0], kind)
}

// fitsTarget is fits for the objects that a target holds: one, or a list.
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

// gone reports whether the error of a list or watch certainly means that nothing is left to watch.
// In doubt it is false, and what is shown stays (G8). If the kind may be served in another way,
// discovery is read again.
func (c *core) gone(ctx context.Context, r objects.Resource, namespace string, err error) bool {
	if objects.Misplaced(err) {
		served, err := c.kinds.Serves(ctx, r.GroupResource())
		return err == nil && !served
	}
	// The rights within a namespace are deleted with it, so a list there is forbidden. This get is
	// forbidden, too, unless a cluster role allows it: then nobody can tell, and what is shown
	// stays.
	if namespace == "" || !apierrors.IsForbidden(err) {
		return false
	}
	namespaces := c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	_, err = namespaces.Get(ctx, namespace, GetOptions{})
	return apierrors.IsNotFound(err)
}

// replaced reports whether the object of that UID is gone, or another one has its name.
func (c *core) replaced(ctx context.Context, o *object, uid types.UID) bool {
	now, err := c.get(ctx, o)
	return IsNotFound(err) || err == nil && now.GetUID() != uid
}

// while wraps an error with what was being done; nil stays nil.
func while(what string, err error) error {
	if err == nil {
		return nil
	}
	return plain.Error(fmt.Errorf("%s: %w", what, err))
}

// ErrShared is returned by methods that are given, as the target, an object that a
// snapshot shows: it is shared, and nobody may write to it. Give a copy, or nil.
var ErrShared = errors.New("the target is an object of a live snapshot, which is shared and read-only")

// checkTarget checks a target before anything is sent.
func (c *Client) checkTarget(target any) error {
	if err := jsonform.CheckTarget(target); err != nil {
		return err
	}
	if target != nil && c.core.streams.Shares(target) {
		return fmt.Errorf("%w: %T", ErrShared, target)
	}
	return nil
}
