package kates

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/connection"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/podlogs"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/client/shared"
	"github.com/kates-go/kates/internal/loops/keyed"
)

// ErrOtherCluster is wrapped by the error of [Client.Reconnect] with a configuration for another
// cluster than the client's.
var ErrOtherCluster = shared.ErrOtherCluster

// Reconnect moves the client to another connection to its cluster: with other credentials, another
// CA, or another address. Watches, snapshots and own writes stay. What a program sees neither goes
// empty nor goes back, no signal is missing, and nothing is listed again. The configuration is
// copied, and the client's options apply to it as they did to the first one.
//
// The new connection is tried before anything changes:
//
//   - The cluster must be the same: the UID of its namespace kube-system (see
//     [Client.ClusterUID]), which the client has read once, or reads now over the old connection.
//     Else the error is [ErrOtherCluster]. This check is left out if the client has not read the
//     UID, and the server refuses it to the old connection, or has refused it before (403, 404). If
//     the client knows neither the UID nor a refusal, and the old connection gets no answer,
//     Reconnect returns an error: call ClusterUID before the credentials expire.
//   - Each watch of the client is opened over the new connection, where it is now. If the server
//     refuses one, that is the error, which names the kind and has the server's answer. A watch
//     that fails now may fail in the same way there; but refused credentials are always an error.
//
// On an error the old connection stays in use, as if nothing had been tried.
//
// Else every later request goes over the new connection, also that of an object which the client
// has returned before ([Client.DynamicInterface], [Client.RESTMapper]). Watches go over one by
// one: the new one is open before the old one ends. Requests under way finish where they are; the
// old connection is closed after the last one. A cluster that was restored from a backup at
// another address is found out, and starts a new history.
//
// One Reconnect runs at a time: another one waits for its turn. The context bounds the call. After
// [Client.Close], also during the call, the error is [ErrClosed]. A client that was made of a
// dynamic.Interface has no connection of its own: that is an error, too.
func (c *Client) Reconnect(ctx context.Context, config *rest.Config) error {
	return c.core.Reconnect(ctx, config)
}

// ClusterUID asks the server for the identity of the cluster: the UID of the namespace
// kube-system. It stays the same for as long as the cluster exists, whatever its address and its
// certificates, and every cluster has another one. It needs the right to get that namespace. A
// server without it (or without UIDs: client-go's bare fake) is an error.
func (c *Client) ClusterUID(ctx context.Context) (types.UID, error) {
	return c.core.ClusterUID(ctx)
}

// bounds are those of the server's answers. A page of a list may have its number of objects, each
// as large as an object may be. Discovery takes many times as much memory as it has bytes, and the
// largest clusters have some megabytes of it.
func (s *settings) bounds() connection.Bounds {
	object := cmp.Or(s.maxObjectBytes, defaultMaxObjectBytes)
	items := max(s.streams.PageSize, core.PageSize)
	if s.streams.PageSize == 0 {
		items = core.PageMost
	}
	return connection.Bounds{Object: object, List: object * min(items, math.MaxInt64/object-1), General: max(object/4, 1<<20)}
}

// connections says what the options make of a configuration.
func (s *settings) connections() *shared.Config {
	c := &shared.Config{QPS: s.qps, Burst: s.burst, Compressed: s.compressed, Warnings: s.warnings, Bounds: s.bounds()}
	if told := s.observe(); len(told.all) > 0 {
		c.Request = told.request
	}
	return c
}

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

// ErrLogsNotSupported is returned by [Client.PodLogs] of a client that is made from a
// dynamic.Interface, such as client-go's fake: logs need a REST connection.
var ErrLogsNotSupported = shared.ErrNoLogs

// LogEvent is a line of a container's log, or the end of a log. See [Client.PodLogs].
type LogEvent struct {
	// PodID is the UID of the pod, and Container the name of its container.
	PodID     string
	Container string
	// Timestamp is when the line was written, as the server says it (RFC 3339), "" if it does not.
	Timestamp string
	// Output is the line, with its end of line if it has one. A line of more than a mebibyte comes
	// in several events, which have the same Timestamp.
	Output string
	// Closed says that this is the last event of the container. It has no Output.
	Closed bool
	// Error is why the log cannot be read any more. It is nil where the log has ended.
	Error error
}

// PodLogs sends the log of a pod to a channel: one event for each line, and for each container one
// event that is Closed. It returns at once. Many calls may share a channel:
//
//	events, options := make(chan kates.LogEvent), &corev1.PodLogOptions{Follow: true}
//	for _, pod := range snap.Pods {
//		if err := client.PodLogs(ctx, pod, options, events); err != nil {
//			return err
//		}
//	}
//	for event := range events {
//		fmt.Printf("%s %s: %s", event.Container, event.Timestamp, event.Output)
//	}
//
// It reads all containers of the pod (those of the object as given; if that has none or no UID, it
// asks the server), or the one that the options name. Nil options are the zero ones. The channel
// may have any size: a reader waits until there is room, and holds one line meanwhile. The channel
// is never closed.
//
// Each line comes once and in order, also if the connection is cut, or is silent for
// [Tuning].IdleTimeout: the log is then read on at the last line. While nothing new comes, the
// pauses grow to ten seconds. With Follow, a log goes on when its container is started again, and
// what the container had written before is read first. It has ended when the container has ended
// for good or the pod is gone, and all is read; a container that has not begun yet is awaited.
// This needs the right to get pods, beside the one to get pods/log. Without Follow, the log as it
// is has an end. The server keeps logs for a limited time, so lines may be missing after a long
// outage.
//
// An event with an Error is for what another try does not mend: the pod is not there, or the
// client has no right. When ctx ends or the client is closed, nothing more is sent, and no
// goroutine is left. A client without a REST connection returns [ErrLogsNotSupported].
//
// See https://kubernetes.io/docs/concepts/cluster-administration/logging/.
func (c *Client) PodLogs(
	ctx context.Context, pod *Pod, options *PodLogOptions, events chan<- LogEvent,
) error {
	return c.core.PodLogs(ctx, pod, options, events != nil, func(ctx context.Context, container string, uid types.UID, e podlogs.Event) error {
		event := LogEvent{
			PodID: string(uid), Container: container,
			Timestamp: e.Timestamp, Output: e.Output, Closed: e.Closed, Error: e.Err,
		}
		select {
		case events <- event:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
