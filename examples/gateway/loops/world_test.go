package loops

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/report"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
	"github.com/kates-go/kates/kates/katestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is an Ingress with one endpoint.
const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: gateway}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: kates}
spec: {controller: gateway.example.com/kates}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
` + endpointSlice + "---" + ingress

const endpointSlice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.0.0.1]}]
`

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: kates
  rules:
  - host: shop.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`

// route is an HTTPRoute of a Gateway.
const route = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kates}
spec: {controllerName: gateway.example.com/kates}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec: {gatewayClassName: kates, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: bad, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [bad.example.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`

// ingressOf is that Ingress under another name, for another host.
func ingressOf(name, host string) string {
	return strings.NewReplacer("name: web, namespace", "name: "+name+", namespace", "shop.example", host+".example").Replace(ingress)
}

// fakeNginx takes configurations. It is told what to refuse.
type fakeNginx struct {
	mu      sync.Mutex
	taken   []*nginx.Config // those that differ from the last one
	hash    string
	calls   int
	again   time.Duration // the answer to the next call
	takes   time.Duration
	refuses func(*nginx.Config) []nginx.Refusal
	in      []int // ports that somebody else listens at
	dead    atomic.Bool
	pushes  bool

	pushing   sync.Mutex
	upstreams map[string][]string // of the last Push
	pushed    int                 // those that differed from the last one
}

func (f *fakeNginx) Apply(_ context.Context, c *nginx.Config) (nginx.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	time.Sleep(f.takes) // in the time of the bubble
	f.calls++
	f.dead.Store(false)
	if again := f.again; again > 0 {
		f.again = 0
		return nginx.Outcome{Again: again}, nil
	}
	var out nginx.Outcome
	for _, s := range c.Servers {
		if one := (nginx.Taken{Port: s.Port, Message: fmt.Sprintf("port %d is taken", s.Port)}); slices.Contains(f.in, s.Port) && !slices.Contains(out.Taken, one) {
			out.Taken = append(out.Taken, one)
		}
	}
	if len(out.Taken) > 0 {
		return out, nil
	}
	if f.refuses != nil {
		if refused := f.refuses(c); len(refused) > 0 {
			return nginx.Outcome{Refused: refused}, nil
		}
	}
	text := string(nginx.Render(c, nginx.RenderOptions{Lua: f.pushes}).Text)
	if !f.pushes {
		text += fmt.Sprint(c.Upstreams)
	}
	reloaded := text != f.hash
	if reloaded {
		f.hash = text
		f.taken = append(f.taken, c)
	}
	return nginx.Outcome{Active: true, Reloaded: reloaded}, nil
}

// Try takes what it does not refuse.
func (f *fakeNginx) Try(_ context.Context, c *nginx.Config) ([]nginx.Refusal, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses == nil {
		return nil, true, nil
	}
	return f.refuses(c), true, nil
}

// Push takes endpoints, also while it takes a configuration.
func (f *fakeNginx) Push(_ context.Context, upstreams map[string][]string) (int, error) {
	f.pushing.Lock()
	defer f.pushing.Unlock()
	if text := fmt.Sprint(upstreams); text != fmt.Sprint(f.upstreams) {
		f.upstreams = maps.Clone(upstreams)
		f.pushed++
	}
	return 0, nil
}

func (f *fakeNginx) endpoints() (n int, last map[string][]string) {
	f.pushing.Lock()
	defer f.pushing.Unlock()
	return f.pushed, f.upstreams
}

func (f *fakeNginx) Pushes() bool { return f.pushes }

func (f *fakeNginx) Alive() bool { return !f.dead.Load() }

// changes returns how many different configurations there were, and the last one.
func (f *fakeNginx) changes() (n int, last *nginx.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.taken) == 0 {
		return 0, nil
	}
	return len(f.taken), f.taken[len(f.taken)-1]
}

func (f *fakeNginx) take(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takes = d
}

func (f *fakeNginx) refuse(refuses func(*nginx.Config) []nginx.Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses = refuses
}

// cannotListen has somebody else listen at these ports, and at no others.
func (f *fakeNginx) cannotListen(ports ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in = ports
}

func (f *fakeNginx) called() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// hosts of a configuration, without those of default servers.
func hosts(c *nginx.Config) (all []string) {
	for _, s := range c.Servers {
		if s.Host != "" {
			all = append(all, s.Host)
		}
	}
	return all
}

// world is an API server in memory, with somebody who changes things there.
type world struct {
	t      *testing.T
	server *katestest.Server
	config *rest.Config // of the gateways
	admin  *kates.Client
}

func newWorld(t *testing.T, options ...katestest.Option) *world {
	server := katestest.NewServer(t, append(options, katestest.WithManifests(shop))...)
	return &world{t, server, rest.CopyConfig(server.Config), server.Client(t, kates.WithScheme(translate.Scheme()))}
}

// start starts a gateway, and returns what ends it.
func (w *world) start(n Nginx, change func(*Gateway)) (g *Gateway, stop func()) {
	client, err := kates.NewClientFromRESTConfig(w.config, kates.WithScheme(translate.Scheme()),
		kates.WithLogger(slog.New(slog.DiscardHandler)), katestest.DetectMutations(w.t))
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	recorder, err := events.NewRecorder(ctx, client, translate.Controller)
	require.NoError(w.t, err)
	g = &Gateway{
		Client: client, Nginx: n, Reports: report.NewWriter(client, recorder), Logger: slog.New(slog.DiscardHandler), Queries: translate.Queries("", ""),
		Translate: translate.Options{Published: []string{"192.0.2.1"}}, Lease: kates.LeaderElection{Namespace: "gateway", Name: "gateway"},
	}
	if change != nil {
		change(g)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(w.t, <-ended)
		recorder.Close()
		client.Close()
	})
	w.t.Cleanup(stop)
	return g, stop
}

// put makes objects, or changes them.
func (w *world) put(manifests string) {
	w.t.Helper()
	objects, err := kates.ParseManifests(manifests)
	require.NoError(w.t, err)
	for _, o := range objects {
		require.NoError(w.t, w.admin.Upsert(w.t.Context(), nil, o, nil))
	}
}

// ingress returns the Ingress as it is.
func (w *world) ingress() *networkingv1.Ingress {
	w.t.Helper()
	in := &networkingv1.Ingress{}
	in.Namespace, in.Name = "shop", "web"
	require.NoError(w.t, w.admin.Get(w.t.Context(), in, in))
	return in
}

// parents is the status of the route.
func (w *world) parents() []gatewayv1.RouteParentStatus {
	w.t.Helper()
	r := &gatewayv1.HTTPRoute{}
	r.APIVersion, r.Kind, r.Namespace, r.Name = gatewayv1.GroupVersion.String(), "HTTPRoute", "shop", "bad"
	require.NoError(w.t, w.admin.Get(w.t.Context(), r, r))
	return r.Status.Parents
}

// settle lets some time pass: in a bubble, that is until nothing happens any more.
func settle() {
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

// slice is the EndpointSlice of the other clusters.
func slice(address string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-9", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}

// cluster is another cluster with one endpoint of the shop.
func (w *world) cluster(f *fleet.Fleet, name string, options ...katestest.Option) *katestest.Server {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	server := katestest.NewServer(w.t, append(options, katestest.WithObjects(namespace, slice("10.9.0.1")))...)
	require.NoError(w.t, f.Add(name, server.Config))
	return server
}
