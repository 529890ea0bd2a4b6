package kates

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/loops/keyed"
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
		_, err := c.core.Kinds.Kind(ctx, kind)
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
	mapping, err := c.core.Kinds.Kind(ctx, kind)
	if err != nil {
		return nil, reach.First(fmt.Errorf("find %q: %w", kind, err))
	}
	return mapping, nil
}

// InvalidateCache forgets what discovery and OpenAPI said. The next use of a kind, or of a custom
// kind's field in a query, asks the server. An unknown kind does this by itself, and so does an
// answer which shows that a kind is served in another way; at most once a second.
func (c *Client) InvalidateCache() error { return c.core.Kinds.Invalidate() }

// ServerVersion asks the server for its version.
func (c *Client) ServerVersion() (*VersionInfo, error) {
	if c.core.Discovery == nil {
		return nil, kinds.ErrNoDiscovery
	}
	version, err := c.core.Discovery.ServerVersion()
	return version, kinds.Said(err)
}

// ServerResources returns every resource that the server serves, in every version. If discovery
// was incomplete, it returns what it has, and an error.
func (c *Client) ServerResources() ([]APIResource, error) {
	if c.core.Discovery == nil {
		return nil, kinds.ErrNoDiscovery
	}
	_, lists, err := c.core.Discovery.ServerGroupsAndResources()
	return kinds.Flatten(lists, err)
}

// ServerPreferredResources is like ServerResources, with each resource in the server's preferred
// version only.
func (c *Client) ServerPreferredResources() ([]APIResource, error) {
	if c.core.Discovery == nil {
		return nil, kinds.ErrNoDiscovery
	}
	return kinds.Flatten(c.core.Discovery.ServerPreferredResources())
}

// RESTMapper returns what the client knows of kinds, in the form that other libraries take. It
// asks the mapper that the client was given, then discovery, and discovery again for an unknown
// kind, at most once a second. Its errors are those of the client: for an unknown kind,
// meta.IsNoMatchError holds; [ErrIncompleteDiscovery] says that this is not known.
//
// It implements meta.RESTMapperWithContext too.
func (c *Client) RESTMapper() meta.RESTMapper { return c.core.Kinds.RESTMapper() }

// ErrShared is returned by methods that are given, as the target, an object that a
// snapshot shows: it is shared, and nobody may write to it. Give a copy, or nil.
var ErrShared = core.ErrShared
