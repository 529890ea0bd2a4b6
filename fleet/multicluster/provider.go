package multicluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/kates-go/kates/fleet"
)

// Options configure a [Provider].
type Options struct {
	// Cluster has the options of each cluster: its scheme, its cache.
	Cluster []cluster.Option
	// NewCluster makes the clusters. Default: cluster.New.
	NewCluster func(*rest.Config, ...cluster.Option) (cluster.Cluster, error)
	// Logger gets why a cluster cannot be engaged. Default: nothing is logged.
	Logger logr.Logger
}

// Provider is a provider of multicluster-runtime: the clusters of a fleet. [NewProvider] makes
// one.
//
// A cluster is engaged when it joins the fleet, whether it answers or not, and disengaged when it
// leaves. One that gets another connection, or that is replaced by another cluster of its name, is
// disengaged and engaged anew. A cluster that the program has given the fleet as a client, without
// a configuration, is not engaged. Each cluster has a goroutine of its own, so none waits for
// another.
type Provider struct {
	fleet   *fleet.Fleet
	options Options

	mu      sync.Mutex
	seats   map[string]*seat
	indexes []index
}

// seat is a cluster of the fleet that is to be engaged.
type seat struct {
	of     *fleet.Cluster
	config *rest.Config
	leave  context.CancelFunc
	// cluster is nil before it is made, and after it has failed. Provider.mu guards it.
	cluster cluster.Cluster
}

// index is a field to index in each cluster.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

var (
	_ multicluster.Provider         = (*Provider)(nil)
	_ multicluster.ProviderRunnable = (*Provider)(nil)
)

// NewProvider makes a provider of a fleet. The fleet must live as long as the provider runs.
func NewProvider(f *fleet.Fleet, options Options) *Provider {
	if options.NewCluster == nil {
		options.NewCluster = cluster.New
	}
	return &Provider{fleet: f, options: options, seats: make(map[string]*seat)}
}

// Get implements [multicluster.Provider].
func (p *Provider) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.seats[name.String()]; s != nil && s.cluster != nil {
		return s.cluster, nil
	}
	return nil, multicluster.ErrClusterNotFound
}

// IndexField implements [multicluster.Provider]. It asks all clusters at a time. One that does not
// answer does not hold up the others, but the call waits for it until ctx ends.
func (p *Provider) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	p.mu.Lock()
	p.indexes = append(p.indexes, index{object, field, extract})
	present := make(map[string]cluster.Cluster)
	for name, s := range p.seats {
		if s.cluster != nil {
			present[name] = s.cluster
		}
	}
	p.mu.Unlock()
	results := make(chan error, len(present))
	for name, c := range present {
		go func() { // ends with the call, or with ctx
			if err := c.GetFieldIndexer().IndexField(ctx, object, field, extract); err != nil {
				results <- fmt.Errorf("index field %q of cluster %q: %w", field, name, err)
				return
			}
			results <- nil
		}()
	}
	var errs []error
	for range present {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}

// Start implements [multicluster.ProviderRunnable]. It returns when ctx ends.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	changed, stop := p.fleet.Listen()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer p.clear() // so that it can be started again
	defer running.Wait()
	defer cancel()
	for {
		select {
		case <-changed:
			p.follow(ctx, aware, &running)
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *Provider) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.seats)
}

// follow makes the seats those of the fleet's clusters.
func (p *Provider) follow(ctx context.Context, aware multicluster.Aware, running *sync.WaitGroup) {
	present := make(map[string]*fleet.Cluster)
	for _, c := range p.fleet.Clusters() {
		if c.Config() != nil {
			present[c.Name()] = c
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, s := range p.seats {
		if c := present[name]; c != s.of || c.Config() != s.config {
			delete(p.seats, name)
			s.leave()
		}
	}
	for name, c := range present {
		if p.seats[name] != nil {
			continue
		}
		s := &seat{of: c, config: c.Config()}
		var life context.Context
		life, s.leave = context.WithCancel(ctx)
		p.seats[name] = s
		running.Go(func() { p.attend(life, name, s, aware) })
	}
}

// attend keeps a cluster engaged until it leaves.
func (p *Provider) attend(ctx context.Context, name string, s *seat, aware multicluster.Aware) {
	defer s.leave()
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := p.engage(ctx, name, s, aware)
		if ctx.Err() != nil {
			return
		}
		p.options.Logger.Error(err, "a cluster cannot be engaged, or has ended", "cluster", name)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// engage makes a cluster, engages it, and runs it until ctx ends or it fails.
func (p *Provider) engage(ctx context.Context, name string, s *seat, aware multicluster.Aware) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	c, err := p.options.NewCluster(rest.CopyConfig(s.config), p.options.Cluster...)
	if err != nil {
		return err
	}
	p.mu.Lock()
	s.cluster = c
	indexes := p.indexes
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		s.cluster = nil
	}()
	ended := make(chan error, 1)
	running.Go(func() {
		defer cancel()
		ended <- c.Start(ctx)
	})
	if !c.GetCache().WaitForCacheSync(ctx) { // it has no informers yet, so this is its start
		return errors.Join(errors.New("its cache does not start"), <-ended)
	}
	for _, i := range indexes {
		if err := c.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract); err != nil {
			return fmt.Errorf("index field %q: %w", i.field, err)
		}
	}
	if err := aware.Engage(ctx, multicluster.ClusterName(name), c); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	return errors.New("it has ended")
}
