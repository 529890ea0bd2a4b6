package connection

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strings"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kates-go/kates/internal/client/dial"
)

// Connection is what a client has of one REST configuration: an HTTP client with connections of
// its own, and the REST clients that send over it. It does not change.
type Connection struct {
	// Host is the address of the server, as the configuration has it.
	Host string
	// Server names the API server. Where the configuration says how to reach it, the same address
	// may be several servers: then no other connection has the name.
	Server string
	// Reach names the address, what its certificate is judged by, and the proxy before it. Functions
	// of the configuration have no name.
	Reach string

	clients map[purpose]rest.Interface
	http    *http.Client
	open    *Conns
}

// purpose is what a REST client is for.
type purpose int

const (
	untyped  purpose = iota // untyped objects
	metadata                // metadata alone
	leases                  // untyped objects, without a rate limit: a late renewal loses a lease
	kinds                   // discovery
)

// Connect makes a connection. It reads files and sends no request. The configuration is the
// connection's from then on.
func Connect(config *rest.Config) (*Connection, error) {
	c := &Connection{Host: config.Host, Server: nameOf(config), clients: make(map[purpose]rest.Interface)}
	var err error
	if c.Reach, err = reachOf(config); err != nil {
		return nil, err
	}
	c.open = OwnConnections(config)
	config.WrapTransport = transport.Wrappers(config.WrapTransport, Once)
	hc, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make an HTTP client: %w", err)
	}
	c.http = WithinServer(hc)
	unlimited := rest.CopyConfig(config)
	unlimited.QPS, unlimited.RateLimiter = -1, nil
	for is, client := range map[purpose]func() (rest.Interface, error){
		untyped:  func() (rest.Interface, error) { return untypedClient(config, c.http) },
		metadata: func() (rest.Interface, error) { return metadataClient(config, c.http) },
		leases:   func() (rest.Interface, error) { return untypedClient(unlimited, c.http) },
		kinds:    func() (rest.Interface, error) { return discoveryClient(config, c.http) },
	} {
		if c.clients[is], err = client(); err != nil {
			return nil, fmt.Errorf("make a REST client: %w", err)
		}
	}
	return c, nil
}

func nameOf(config *rest.Config) string {
	if config.Dial != nil && !dial.Guarded(config.Dial) || config.Transport != nil || config.Proxy != nil {
		return rand.Text()
	}
	return fmt.Sprintf("%q", []string{config.Host, config.APIPath, config.TLSClientConfig.ServerName})
}

func reachOf(config *rest.Config) (string, error) {
	tls, at, proxy := config.TLSClientConfig, config.Host, ""
	if base, _, err := rest.DefaultServerUrlFor(config); err == nil {
		at = strings.TrimSuffix(base.String(), "/") // however it was written
	}
	if len(tls.CAData) == 0 && tls.CAFile != "" {
		ca, err := os.ReadFile(tls.CAFile)
		if err != nil {
			return "", fmt.Errorf("read the CA: %w", err)
		}
		tls.CAData = ca
	}
	if config.Proxy != nil {
		if r, err := http.NewRequest(http.MethodGet, at, nil); err == nil {
			if u, err := config.Proxy(r); err == nil && u != nil {
				proxy = u.Redacted()
			}
		}
	}
	return fmt.Sprintf("%q", []string{at, tls.ServerName, fmt.Sprint(tls.Insecure), string(tls.CAData), proxy}), nil
}

func untypedClient(config *rest.Config, hc *http.Client) (rest.Interface, error) {
	config = dynamic.ConfigFor(config)
	config.NegotiatedSerializer = discreet{config.NegotiatedSerializer}
	return rest.UnversionedRESTClientForConfigAndClient(config, hc)
}

// metadataClient prefers protobuf. Its codecs know PartialObjectMetadata and the list of these.
func metadataClient(config *rest.Config, hc *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.ContentType = runtime.ContentTypeProtobuf
	config.NegotiatedSerializer = discreet{metainternalversionscheme.Codecs.WithoutConversion()}
	config.GroupVersion = &schema.GroupVersion{}
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	return rest.RESTClientForConfigAndClient(config, hc)
}

func discoveryClient(config *rest.Config, hc *http.Client) (rest.Interface, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, hc)
	if err != nil {
		return nil, err
	}
	return d.RESTClient(), nil
}

// Dynamic returns a dynamic client that sends over this connection.
func (c *Connection) Dynamic() dynamic.Interface { return dynamic.New(c.clients[untyped]) }

// Close closes all connections that no request uses, and waits.
func (c *Connection) Close() { c.open.Close(c.closeIdle) }

func (c *Connection) closeIdle() {
	closeIdle(c.http.Transport)
	closeIdle(c.open.beneath) // a wrapper of the caller's need not show it
}

// closeIdle closes the idle connections of a transport, or of the one that it wraps. It leaves a
// transport alone that shows neither. The function of apimachinery logs a warning then.
func closeIdle(t http.RoundTripper) {
	for t != nil {
		switch is := t.(type) {
		case interface{ CloseIdleConnections() }:
			is.CloseIdleConnections()
			return
		case utilnet.RoundTripperWrapper:
			t = is.WrappedRoundTripper()
		default:
			return
		}
	}
}

// overKey is the key of a context's connection.
type overKey struct{}

// Over returns a context for requests of a [Server] that are sent over another connection than
// the one in use.
func Over(ctx context.Context, c *Connection) context.Context {
	return context.WithValue(ctx, overKey{}, c)
}
