package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kates-go/kates/internal/client/apipath"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/podlogs"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/loops/fence"
)

// connection is how a client reaches its cluster. The zero value is that of a client which has
// only a dynamic.Interface.
type connection struct {
	link   *wire.Link
	logs   podlogs.Source
	config func(*rest.Config) *rest.Config // what the client's options make of a configuration
	turn   chan struct{}                   // holds one value while a Reconnect runs
	uid    atomic.Pointer[types.UID]       // of the cluster, once it was read
	untold atomic.Bool                     // the cluster has refused to say its UID
}

// ErrOtherCluster is wrapped by the error of [Client.Reconnect] with a configuration for another
// cluster than the client's.
var ErrOtherCluster = errors.New("the configuration is for another cluster")

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
	return reach.First(while("reconnect", c.core.reconnect(ctx, config)))
}

func (c *shared) reconnect(ctx context.Context, config *rest.Config) error {
	link, turn := c.connection.link, c.connection.turn
	switch {
	case link == nil:
		return errors.New("this client was made of a dynamic.Interface, which has the connection")
	case config == nil:
		return errors.New("it needs a rest.Config")
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := c.Streams.Bound(ctx)
	defer cancel()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	next, err := wire.Connect(c.connection.config(config))
	if err != nil {
		return err
	}
	if err = c.sameCluster(ctx, next); err == nil {
		err = c.Streams.Move(wire.Over(ctx, next), streamset.Exchange{
			Do:        func() { link.Exchange(next) },
			Elsewhere: next.Server != link.Now().Server,
			Unlike:    next.Reach != link.Now().Reach,
		})
	}
	if err != nil {
		next.Close()
		if errors.Is(context.Cause(ctx), ErrClosed) {
			return ErrClosed
		}
		return err
	}
	c.Log.Info("reconnected", "server", next.Host)
	return nil
}

// close closes the connections. A Reconnect that runs ends first, because the client is closed: it
// may have made the other connection the one in use, and has watches open there.
func (c *connection) close() {
	if c.turn != nil {
		c.turn <- struct{}{}
		defer func() { <-c.turn }()
	}
	c.link.Close()
}

// sameClusterTimeout bounds the questions which cluster it is.
const sameClusterTimeout = 30 * time.Second

// sameCluster is an error if another connection is to another cluster, or if nobody can tell.
func (c *shared) sameCluster(ctx context.Context, next *wire.Connection) error {
	ctx, cancel := context.WithTimeout(ctx, sameClusterTimeout)
	defer cancel()
	uid, err := clusterUID(ctx, next.Dynamic())
	if err != nil && !refused(err) {
		return err
	}
	known := c.connection.uid.Load()
	if known == nil {
		if c.connection.untold.Load() {
			return nil
		}
		was, err := c.clusterUID(ctx)
		switch {
		case refused(err):
			return nil
		case err != nil:
			return fmt.Errorf("nobody knows which cluster the client has (ask for ClusterUID in good time): %w", err)
		}
		known = &was
	}
	switch {
	case err != nil:
		return err
	case uid != *known:
		return fmt.Errorf("%w: its UID is %s, that of the client's %s", ErrOtherCluster, uid, *known)
	}
	return nil
}

// refused reports whether the server does not tell which cluster it is, and will not.
func refused(err error) bool { return IsForbidden(err) || IsNotFound(err) }

// ClusterUID asks the server for the identity of the cluster: the UID of the namespace
// kube-system. It stays the same for as long as the cluster exists, whatever its address and its
// certificates, and every cluster has another one. It needs the right to get that namespace. A
// server without it (or without UIDs: client-go's bare fake) is an error.
func (c *Client) ClusterUID(ctx context.Context) (types.UID, error) {
	return c.core.clusterUID(ctx)
}

// clusterUID asks the server, and remembers the first answer, or that it was refused.
func (c *shared) clusterUID(ctx context.Context) (types.UID, error) {
	uid, err := clusterUID(ctx, c.Dynamic)
	switch {
	case err == nil:
		c.connection.uid.CompareAndSwap(nil, &uid)
	case refused(err):
		c.connection.untold.Store(true)
	}
	return uid, err
}

func clusterUID(ctx context.Context, over dynamic.Interface) (types.UID, error) {
	namespaces := over.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	u, err := namespaces.Get(ctx, metav1.NamespaceSystem, GetOptions{})
	if err == nil && u.GetUID() == "" {
		err = errors.New("the namespace has no UID")
	}
	if err != nil {
		return "", reach.First(fmt.Errorf("read the UID of namespace kube-system: %w", err))
	}
	return u.GetUID(), nil
}

// bounds are those of the server's answers. A page of a list may have its number of objects, each
// as large as an object may be. Discovery takes many times as much memory as it has bytes, and the
// largest clusters have some megabytes of it.
func (s *settings) bounds() wire.Bounds {
	object := cmp.Or(s.maxObjectBytes, defaultMaxObjectBytes)
	items := max(s.streams.PageSize, core.PageSize)
	return wire.Bounds{Object: object, List: object * min(items, math.MaxInt64/object-1), General: max(object/4, 1<<20)}
}

// restConfig returns the configuration of all connections: a copy of the caller's, with what the
// options say.
func (s *settings) restConfig(config *rest.Config) *rest.Config {
	cfg := rest.CopyConfig(config)
	if s.qps != 0 {
		cfg.QPS, cfg.Burst, cfg.RateLimiter = s.qps, s.burst, nil
	}
	if cfg.QPS == 0 && cfg.RateLimiter == nil {
		cfg.QPS = -1
	}
	if cfg.QPS > 0 && cfg.RateLimiter == nil { // one limiter for all clients
		burst := cmp.Or(cfg.Burst, rest.DefaultBurst)
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, burst)
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandler = s.warnings
	}
	cfg.DisableCompression = cfg.DisableCompression || !s.compressed
	s.told().requests(cfg)
	wire.RereadToken(cfg)
	bounds := s.bounds()
	bounds.Base = apipath.Base(cfg)
	// The fence is innermost, the bounds count what all others make of an answer.
	cfg.WrapTransport = transport.Wrappers(fence.Transport, cfg.WrapTransport, bounds.Transport)
	return cfg
}
