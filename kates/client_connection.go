package kates

import (
	"cmp"
	"context"
	"math"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/shared"
	"github.com/kates-go/kates/internal/client/wire"
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
//     UID, and the old connection is refused it, or was once (403, 404). If the old one may have
//     expired by the time of the call, ask for ClusterUID in good time: if the old connection
//     cannot be asked, and neither is known, it is an error.
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
func (s *settings) bounds() wire.Bounds {
	object := cmp.Or(s.maxObjectBytes, defaultMaxObjectBytes)
	items := max(s.streams.PageSize, core.PageSize)
	return wire.Bounds{Object: object, List: object * min(items, math.MaxInt64/object-1), General: max(object/4, 1<<20)}
}

// connections says what the options make of a configuration.
func (s *settings) connections() *shared.Config {
	c := &shared.Config{QPS: s.qps, Burst: s.burst, Compressed: s.compressed, Warnings: s.warnings, Bounds: s.bounds()}
	if told := s.observe(); len(told.all) > 0 {
		c.Request = told.request
	}
	return c
}
