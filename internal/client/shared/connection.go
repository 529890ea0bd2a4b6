package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/apipath"
	"github.com/kates-go/kates/internal/client/connection"
	"github.com/kates-go/kates/internal/client/kubeconfig"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/loops/fence"
)

// ErrOtherCluster is the error of a Reconnect to another cluster.
var ErrOtherCluster = errors.New("the configuration is for another cluster")

// Reconnect moves the client to another connection to its cluster.
func (c *Client) Reconnect(ctx context.Context, config *rest.Config) error {
	return reach.First(plain.While("reconnect", c.reconnect(ctx, config)))
}

func (c *Client) reconnect(ctx context.Context, config *rest.Config) error {
	link, turn := c.Link, c.reconnecting
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
	next, err := connection.Connect(c.Configure(config))
	if err != nil {
		return err
	}
	uid, err := c.sameCluster(ctx, next)
	if err == nil {
		err = c.Streams.Move(connection.Over(ctx, next), streamset.Exchange{
			Do:        func() { link.Exchange(next) },
			Elsewhere: next.Server != link.Now().Server,
			Unlike:    next.Reach != link.Now().Reach,
		})
	}
	if err != nil {
		next.Close()
		if errors.Is(context.Cause(ctx), stream.ErrClosed) {
			return stream.ErrClosed
		}
		return err
	}
	if uid != "" { // the cluster may have refused it before
		c.uid.CompareAndSwap(nil, &uid)
	}
	c.Log.Info("reconnected", "server", next.Host)
	return nil
}

// sameClusterTimeout bounds the questions which cluster it is.
const sameClusterTimeout = 30 * time.Second

// sameCluster is an error if another connection is to another cluster, or if nobody can tell. It
// returns the UID that the other connection tells, "" if that is refused.
func (c *Client) sameCluster(ctx context.Context, next *connection.Connection) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, sameClusterTimeout)
	defer cancel()
	uid, err := clusterUID(ctx, next.Dynamic())
	if err != nil && !refused(err) {
		return "", err
	}
	known := c.uid.Load()
	if known == nil {
		if c.untold.Load() {
			return uid, nil
		}
		was, err := c.ClusterUID(ctx)
		switch {
		case refused(err):
			return uid, nil
		case err != nil:
			return "", fmt.Errorf("nobody knows which cluster the client has (ask for ClusterUID in good time): %w", err)
		}
		known = &was
	}
	switch {
	case err != nil:
		return "", err
	case uid != *known:
		return "", fmt.Errorf("%w: its UID is %s, that of the client's %s", ErrOtherCluster, uid, *known)
	}
	return uid, nil
}

// refused reports whether the server does not tell which cluster it is, and will not.
func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// ClusterUID asks the server which cluster it is, and remembers the first answer, or that the
// server has refused.
func (c *Client) ClusterUID(ctx context.Context) (types.UID, error) {
	uid, err := clusterUID(ctx, c.Dynamic)
	switch {
	case err == nil:
		c.uid.CompareAndSwap(nil, &uid)
	case refused(err):
		c.untold.Store(true)
	}
	return uid, err
}

func clusterUID(ctx context.Context, over dynamic.Interface) (types.UID, error) {
	namespaces := over.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	u, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err == nil && u.GetUID() == "" {
		err = errors.New("the namespace has no UID")
	}
	if err != nil {
		return "", reach.First(fmt.Errorf("read the UID of namespace kube-system: %w", err))
	}
	return u.GetUID(), nil
}

// Config is what the options of a client say of its connections.
type Config struct {
	QPS        float32 // 0: that of the configuration; less: no limit
	Burst      int
	Compressed bool                 // answers may be
	Warnings   *connection.Warnings // of the server
	Bounds     connection.Bounds    // of its answers
	Request    connection.Observe   // nil: nobody is told of requests
}

// Of returns the configuration of all connections: a copy of the caller's, with what the options
// say.
func (s *Config) Of(config *rest.Config) *rest.Config {
	cfg := rest.CopyConfig(config)
	if s.QPS != 0 {
		cfg.QPS, cfg.Burst, cfg.RateLimiter = s.QPS, s.Burst, nil
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
		cfg.WarningHandler = s.Warnings
	}
	cfg.DisableCompression = cfg.DisableCompression || !s.Compressed
	if s.Request != nil {
		cfg.WrapTransport = transport.Wrappers(cfg.WrapTransport, connection.Observed(cfg, s.Request))
	}
	kubeconfig.RereadToken(cfg)
	bounds := s.Bounds
	bounds.Base = apipath.Base(cfg)
	// The fence is innermost, the bounds count what all others make of an answer.
	cfg.WrapTransport = transport.Wrappers(fence.Transport, cfg.WrapTransport, bounds.Transport)
	return cfg
}
