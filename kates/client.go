package kates

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // what a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/utils/clock"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/tested"
	"github.com/kates-go/kates/internal/client/connection"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/kubeconfig"
	"github.com/kates-go/kates/internal/client/shared"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/client/write"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
)

// Client reads, writes and watches the objects of one cluster. It takes objects of
// every kind, typed (*Service) or not (*Unstructured, map[string]any, any struct with the
// right JSON), and kinds by whatever name kubectl takes.
//
// Its watches show its own writes: once a write method has returned nil, every later snapshot
// contains the effect (see the package documentation). For this, write through the client that
// watches, or call [Client.Observe] after a write.
//
// A client is safe for concurrent use. It holds connections, and runs goroutines while something
// is watched; Close ends them all. Its connections are its own, unless the configuration has a
// Transport.
type Client struct {
	core      *shared.Client
	watch     *lockedSettings
	observers *observers
}

// NewClient returns a client for the cluster that the configuration names. It follows the rules of
// kubectl (the named kubeconfig, else $KUBECONFIG, else ~/.kube/config); without any of these, in
// a pod, it is the pod's cluster. NewClient reads files and sends no request.
func NewClient(config ClientConfig, opts ...Option) (*Client, error) {
	cfg, namespace, err := config.load()
	if err != nil {
		return nil, err
	}
	return newClient(cfg, namespace, opts...)
}

// NewClientFromRESTConfig returns a client for a REST configuration, which is copied. Its rate
// limits are respected if they are not zero; zero means none. It sends no request.
func NewClientFromRESTConfig(config *rest.Config, opts ...Option) (*Client, error) {
	return newClient(config, "", opts...)
}

func newClient(config *rest.Config, namespace string, opts ...Option) (*Client, error) {
	if config == nil {
		return nil, errors.New("a client needs a rest.Config")
	}
	s, err := newSettings(namespace, opts)
	if err != nil {
		return nil, err
	}
	configure := s.connections().Of
	first, err := connection.Connect(configure(config))
	if err != nil {
		return nil, err
	}
	link := connection.NewLink(first)
	requests, dyn, disco := wire.NewServer(link), link.Dynamic(), memory.NewMemCacheClient(link.Discovery(s.bounds().General))
	requests.Scheme, requests.ManagedFields, requests.StreamTyped = s.scheme, s.managedFields, s.streamLists
	requests.MaxObjectBytes = cmp.Or(s.maxObjectBytes, defaultMaxObjectBytes)
	c := shared.New(link)
	c.Core = core.Core{Dynamic: dyn, Server: requests, Kinds: kinds.New(s.mapper, disco, clock.RealClock{})}
	c.Leases.Client, c.Leases.Server = link.Leases(), first.Server
	c.Discovery, c.Untyped, c.Configure, c.Logs = disco, s.untyped, configure, &shared.LogSource{Server: requests, Dynamic: dyn}
	requests.Applied = &wire.Applied{
		Manager: write.ManagerOr(s.fieldManager), Mark: AppliedAnnotation, Put: c.Applied.Entries.Put,
	}
	client := s.client(c)
	tested.TellWitness(link.Transport(), client)
	return client, nil
}

// NewClientFromDynamic returns a client on a dynamic client and a mapper: on client-go's fake
// (katestest.NewClient does it in one line), or on one that wraps a real client. Such a client has
// no discovery. On a real client it reads each object before a Delete and lists it afterwards,
// because a dynamic.Interface does not show the server's answer.
func NewClientFromDynamic(
	dyn dynamic.Interface, mapper meta.RESTMapper, opts ...Option,
) (*Client, error) {
	if dyn == nil || mapper == nil {
		return nil, errors.New("a client needs a dynamic.Interface and a meta.RESTMapper")
	}
	s, err := newSettings("", opts)
	if err != nil {
		return nil, err
	}
	if s.mapper != nil {
		mapper = s.mapper
	}
	bare := watchlist.DoesClientNotSupportWatchListSemantics(dyn) // only a fake says so
	s.streams.StreamLists = s.streams.StreamLists && !bare
	c := shared.New(nil)
	c.Core = core.Core{Dynamic: dyn, Server: wire.Dynamic{Client: dyn}, Kinds: kinds.New(mapper, nil, clock.RealClock{})}
	c.Leases.Client, c.Leases.Server, c.Untyped = dyn, rand.Text(), true
	if bare {
		c.Fake = fake.New(dyn)
		c.Server = c.Fake
	}
	return s.client(c), nil
}

// newSettings returns what the options say. It is an error if one of them makes no sense.
func newSettings(namespace string, opts []Option) (*settings, error) {
	s := &settings{
		scheme: scheme.Scheme, namespace: namespace,
		log:     logr.FromSlogHandler(slog.Default().Handler()),
		streams: stream.Config{StreamLists: true},
		watch:   watchSettings{pace: collect.Pace{Interval: time.Second}},
	}
	for _, o := range opts {
		s.apply(o)
	}
	if s.namespace == "" {
		s.namespace = "default"
	}
	s.log = lockorder.Logged(s.log)
	s.warnings = connection.NewWarnings(s.log)
	if err := cmp.Or(s.wrong, s.watch.wrong, core.CheckNamespace(s.namespace)); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return s, nil
}

// client finishes what clients share.
func (s *settings) client(c *shared.Client) *Client {
	c.Scheme, c.Namespace, c.FieldManager, c.Log = s.scheme, s.namespace, s.fieldManager, s.log
	told := s.observe()
	c.Told, c.Hang = &told.Told, cmp.Or(s.hang, defaultHang)
	s.streams.Logger = s.log
	s.streams.Source, s.streams.Gone, s.streams.Suspect = c.Server.Source, c.Gone, c.Link.CloseIdle
	if w := s.streams.Warm; w != nil {
		w.Origin = c.Origin()
		w.Codec.Record = cmp.Or(s.maxObjectBytes, defaultMaxObjectBytes)
		if rest, ok := c.Server.(*wire.Server); ok {
			w.Helpers = rest.Helpers
		}
	}
	c.Streams = streamset.New(s.streams)
	client := &Client{core: c, watch: &lockedSettings{watchSettings: s.watch}, observers: told}
	told.begin(client)
	return client
}

// With returns a client that shares everything with this one (connections, streams, own writes)
// but watches with other settings. Closing one closes both.
func (c *Client) With(opts ...WatchOption) *Client {
	w := c.watch.get()
	for _, o := range opts {
		w.apply(o)
	}
	return &Client{core: c.core, watch: &lockedSettings{watchSettings: w}, observers: c.observers}
}

// For Emissary's code: MaxAccumulatorInterval sets the least time between two signals of the
// accumulators that Watch returns from now on. New code uses [WithInterval].
//
// A change waits at most this long for other changes before it is signalled. The interval must be
// positive.
func (c *Client) MaxAccumulatorInterval(interval time.Duration) error {
	if interval <= 0 {
		return fmt.Errorf("the interval must be positive, not %s", interval)
	}
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	c.watch.pace.Interval = interval
	return nil
}

// Scheme returns the scheme that maps Go types to kinds for this client, see [WithScheme] and
// [InScheme].
func (c *Client) Scheme() *runtime.Scheme { return c.core.Scheme }

// DynamicInterface returns the dynamic client that this client uses. A write through it is not an
// own write unless it is given to [Client.Observe].
func (c *Client) DynamicInterface() dynamic.Interface { return c.core.Dynamic }

// Sync returns when every watch of the client is as new as the server was at the call. A new
// leader needs this before it acts. Sync lists each watched query once. Of a query with more
// objects than a first page ([Tuning].PageSize) it lists one, and reads a watch for a second or two
// where nothing happens, unless the server does not send bookmarks.
func (c *Client) Sync(ctx context.Context) error { return c.core.Streams.Sync(ctx) }

// Close ends every watch of this client and of the clients that With returned, and the logs that
// they follow, and waits until all their goroutines have ended. A Reconnect ends, too. Close
// closes the client's connections, unless a read or write is under way. Reads and writes still
// work afterwards, without watches.
func (c *Client) Close() { c.core.Close() }

// ClientConfig says which cluster to talk to. The zero value is what kubectl
// without flags would use: the files of $KUBECONFIG, else ~/.kube/config, and in
// a pod that has neither, its service account.
type ClientConfig struct {
	// Kubeconfig is the file to read instead of those; it must exist, and have the context: the
	// service account is no substitute for it.
	Kubeconfig string
	// Context is the kubeconfig context to use instead of the current one.
	Context string
	// Namespace is where objects that name no namespace are read and written.
	// Empty: the context's, else the pod's own, else "default".
	Namespace string
}

// RESTConfig reads the configuration, for what is no client of this package: the kit's server, a
// client-go client, a manager. It follows the rules of [NewClient], and sends no request. The
// result is the caller's. The default namespace is not part of a rest.Config.
func (c ClientConfig) RESTConfig() (*rest.Config, error) {
	config, _, err := c.load()
	return config, err
}

// load reads the configuration. It returns the default namespace too.
func (c ClientConfig) load() (*rest.Config, string, error) {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	overrides.Context.Namespace = c.Namespace
	return kubeconfig.Load(c.Kubeconfig, overrides)
}

// For Emissary's code: NewClientFactory makes a client from kubectl's connection flags. New code
// binds its own flags to the fields of a [ClientConfig], or takes kubectl's from the module
// kates/configflags.
//
// It adds the flags (--kubeconfig, --context, --namespace/-n, --server/-s, --token, --as,
// --as-user-extra, --request-timeout and so on) to flags, and returns the function that makes a
// client from them once they are parsed; before that it returns an error. The options are those of
// the client; what they say counts more than the flags ([WithNamespace]).
//
// The flag --cache-dir is accepted, so that command lines for kubectl work. It has no effect: what
// discovery says is held in memory, and nothing is written to disk.
//
// It panics if flags are parsed already: the new ones would never be set.
func NewClientFactory(flags *pflag.FlagSet, opts ...Option) func() (*Client, error) {
	if flags.Parsed() {
		panic("kates.NewClientFactory: call it before the flags are parsed")
	}
	load := kubeconfig.BindFlags(flags)
	return func() (*Client, error) {
		cfg, namespace, err := load()
		if err != nil {
			return nil, err
		}
		return newClient(cfg, namespace, opts...)
	}
}

// InCluster tells whether this process runs in a pod that has credentials for
// its cluster, by what the kubelet provides: the API server's address in the
// environment, and a service account token.
func InCluster() bool {
	return kubeconfig.InPod(os.Getenv, kubeconfig.ServiceAccountFolder)
}
