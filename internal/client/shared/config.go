package shared

import (
	"cmp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kates-go/kates/internal/client/apipath"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/loops/fence"
)

// Config is what the options of a client say of its connections.
type Config struct {
	QPS        float32 // 0: that of the configuration; less: no limit
	Burst      int
	Compressed bool           // answers may be
	Warnings   *wire.Warnings // of the server
	Bounds     wire.Bounds    // of its answers
	Request    wire.Observe   // nil: nobody is told of requests
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
		cfg.WrapTransport = transport.Wrappers(cfg.WrapTransport, wire.Observed(cfg, s.Request))
	}
	wire.RereadToken(cfg)
	bounds := s.Bounds
	bounds.Base = apipath.Base(cfg)
	// The fence is innermost, the bounds count what all others make of an answer.
	cfg.WrapTransport = transport.Wrappers(fence.Transport, cfg.WrapTransport, bounds.Transport)
	return cfg
}
