// Package demo is what the gateway serves when there is no cluster: an API in memory, an
// application with real servers on the loopback interface, somebody who changes it all the time,
// and traffic that counts every request. Start with [New].
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	//go:embed crds.yaml
	crds string
	//go:embed shop.yaml
	shop string
	//go:embed changes.yaml
	changes string
)

// MostClusters is how many other clusters there can be.
const MostClusters = 9

// Demo is a demonstration.
type Demo struct {
	// Client is the gateway's, of the cluster in memory.
	Client *kates.Client
	// Fleet has the other clusters. nil: there are none.
	Fleet *fleet.Fleet

	options   Options
	server    *katestest.Server
	admin     *kates.Client // of those who are not the gateway
	clusters  []*cluster
	authority *authority
	backends  *backends
	traffic   *traffic

	mu    sync.Mutex // of Out
	start time.Time
}

// Options of a demonstration.
type Options struct {
	Clusters int            // others, whose endpoints are served, too
	Client   []kates.Option // of the gateway's clients
	Address  netip.Addr     // where the gateway listens
	Port     func(int) int  // where the gateway listens for a port that objects name
	Out      io.Writer
}

// namespace is all that other clusters have at first.
const namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`

// cluster is another cluster in memory. It has nothing but endpoints.
type cluster struct {
	name          string
	server        *katestest.Server
	client, admin *kates.Client
}

// New starts the clusters and the servers of the application. Close ends them.
func New(o Options) (d *Demo, err error) {
	d = &Demo{options: o, start: time.Now()}
	defer func() {
		if err != nil {
			d.Close()
			d = nil
		}
	}()
	if d.authority, err = newAuthority(); err != nil {
		return d, err
	}
	if d.backends, err = startBackends(d.endpoints()); err != nil {
		return d, err
	}
	d.traffic = newTraffic(d.authority, o.Address, o.Port)
	home, err := newCluster("home", o.Client, katestest.WithManifests(crds))
	if err != nil {
		return d, err
	}
	d.server, d.Client, d.admin = home.server, home.client, home.admin
	if err := d.join(); err != nil {
		return d, err
	}
	return d, d.populate(context.Background())
}

func newCluster(name string, options []kates.Option, contents ...katestest.Option) (*cluster, error) {
	server, err := katestest.StartServer(contents...)
	if err != nil {
		return nil, err
	}
	client, err := kates.NewClientFromRESTConfig(server.Config, append(slices.Clip(options), kates.WithClusterName(name))...)
	admin, failed := kates.NewClientFromRESTConfig(server.Config)
	if err = errors.Join(err, failed); err != nil {
		server.Close()
		return nil, err
	}
	return &cluster{name, server, client, admin}, nil
}

// join makes the other clusters, and a fleet of them.
func (d *Demo) join() (err error) {
	if d.options.Clusters == 0 {
		return nil
	}
	if d.Fleet, err = fleet.New(fleet.Options{Home: d.Client, Interval: 50 * time.Millisecond}); err != nil {
		return err
	}
	for i := range d.options.Clusters {
		c, err := newCluster(fmt.Sprintf("cluster-%d", i+1), d.options.Client, katestest.WithManifests(namespace))
		if err != nil {
			return err
		}
		d.clusters = append(d.clusters, c)
		if err := d.Fleet.Set(fleet.Member{Name: c.name, Client: c.client}); err != nil {
			return err
		}
	}
	return nil
}

// populate makes what exists before the gateway starts.
func (d *Demo) populate(ctx context.Context) error {
	objects, err := kates.ParseManifests(shop)
	if err != nil {
		return err
	}
	secret, err := d.authority.secret("shop.example.com")
	if err != nil {
		return err
	}
	objects = append(objects, secret, slice("web", 2), slice("web-next", 1), slice("blog", 1), slice("blog-v2", 1))
	for _, o := range objects {
		if s, ok := o.(*discoveryv1.EndpointSlice); ok {
			s.Ports[0].Port = new(int32(d.backends.port))
		}
		if err := d.admin.Create(ctx, o, nil); err != nil {
			return err
		}
	}
	return nil
}

// Gateway is what the demonstration knows of the gateway.
type Gateway struct {
	Serving func() bool
	// Reloads counts those of nginx. nil: there is no nginx, and no traffic.
	Reloads func() int
	// Page is the address of the status page. Empty: there is none.
	Page string
}

// Start runs the demonstration: it makes changes and traffic until ctx ends. The returned function
// waits for its end, and prints a summary.
func (d *Demo) Start(ctx context.Context, g Gateway) (wait func()) {
	d.intro(g)
	var running sync.WaitGroup
	running.Go(func() { d.printEvents(ctx) })
	running.Go(func() {
		if !until(ctx, g.Serving) {
			return
		}
		var sending sync.WaitGroup
		defer sending.Wait()
		if g.Reloads != nil {
			sending.Go(func() { d.traffic.run(ctx) })
		}
		d.play(ctx, g)
	})
	return func() {
		running.Wait()
		requests, failed, failure := d.traffic.counts()
		if g.Reloads == nil {
			return
		}
		d.line("%s requests, %d failed.", thousands(requests), failed)
		if failed > 0 {
			d.line("The first one: %s", failure)
		}
	}
}

// until waits for a condition, and reports whether it came before the end.
func until(ctx context.Context, is func() bool) bool {
	for !is() {
		if !pause(ctx, 20*time.Millisecond) {
			return false
		}
	}
	return true
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Close ends everything.
func (d *Demo) Close() {
	if d.Fleet != nil {
		d.Fleet.Close()
	}
	if d.server != nil {
		(&cluster{"home", d.server, d.Client, d.admin}).close()
	}
	for _, c := range d.clusters {
		c.close()
	}
	if d.backends != nil {
		d.backends.close()
	}
}

func (c *cluster) close() {
	c.admin.Close()
	c.client.Close()
	c.server.Close()
}
