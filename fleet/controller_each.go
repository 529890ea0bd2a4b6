package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
)

// Controller reconciles roots in each cluster of a fleet. [NewController] makes one. All its
// methods are safe for concurrent use.
type Controller[P any] struct {
	name      string
	fleet     *Fleet
	plan      *runPlan
	reconcile func(context.Context, *Cluster, *P) (controller.Result, error)
	running   atomic.Bool
	began     atomic.Bool // it has run
	inside    sync.Map    // by the cluster's name, the *inside[P] of each: now, or in the last run
}

// inside is a controller inside one cluster.
type inside[P any] struct {
	one    *controller.Controller[P] // nil: P does not suit the cluster's client
	failed atomic.Pointer[error]     // why it does not run; nil: it does
}

// NewController makes a controller of roots in each cluster:
//
//	type AppParts struct {
//	    Root        *v1.App              `kates:",root"`
//	    Deployments []*appsv1.Deployment `kates:",owned"`
//	}
//	reconcile := func(ctx context.Context, cluster *fleet.Cluster, p *AppParts) (controller.Result, error) {
//	    return controller.Done, converge(ctx, cluster.Client(), p)
//	}
//	apps, err := fleet.NewController(f, "apps", reconcile, kates.WithWorkers(4))
//	if err != nil { ... }
//	err = apps.Run(ctx)
//
// P is a struct of package controller, and so are the rules. A [controller.Controller] runs in
// each cluster, with the cluster's client, from when the cluster comes until it leaves. Roots, and
// what belongs to them, are in the same cluster. A reconcile sees what was written with that
// client before.
//
// Clusters do not wait for each other. [kates.WithWorkers] says how many reconciles there are at a
// time for each cluster. Errors of reconciles are each a [*KeyError]. If the watches of a cluster
// cannot start, or end, that is a [*ClusterError], which is logged, given to [kates.WithOnError]
// and tried again after the backoff. Like a controller that is started again, that one reconciles
// all roots of the cluster, and does not learn of roots that departed meanwhile.
//
// A cluster that does not answer keeps its last known objects, and nothing is reconciled for that.
// When a cluster leaves the fleet, the contexts of its reconciles end, and none begins any more:
// it cannot be reached, so none of its roots is reconciled as departed. A program that keeps
// something for a root elsewhere removes it when the cluster is gone ([Cluster.Done],
// [Fleet.Listen]), or uses [RunEach]. If a cluster comes, or takes the name of another one, all
// its roots are reconciled.
//
// The options are those of [controller.New]. With [kates.LeaderElection], whose Lease is in the
// home cluster (Options.Home), followers do not watch: a new leader begins with fresh lists.
// Signals, triggers and the shutdown timeout are those of the whole controller. [kates.Sharding]
// and [kates.Handle] are errors, and so is a field whose query comes later.
//
// What is wrong with P or an option is an error here. The types of P must be known to the scheme
// of Options.Client. What only a server knows is an error of each cluster.
func NewController[P any](f *Fleet, name string, reconcile func(ctx context.Context, cluster *Cluster, p *P) (controller.Result, error), options ...kates.RunOption) (*Controller[P], error) {
	c := &Controller[P]{name: name, fleet: f, reconcile: reconcile}
	switch {
	case f == nil:
		return nil, c.named(errors.New("the fleet is nil"))
	case reconcile == nil:
		return nil, c.named(errors.New("there is no function to call"))
	}
	// the defaults of controllers
	options = append([]kates.RunOption{kates.WithInterval(0), kates.WithShutdownTimeout(keyed.ControllerTimeout)}, options...)
	var err error
	if c.plan, err = f.plan(name, f.log.WithValues("controller", name), options); err != nil {
		return nil, c.named(err)
	}
	if err := compile.CheckNoneLater(reflect.TypeFor[P]()); err != nil {
		return nil, c.named(err)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// check reports what is wrong with P and the options, as far as that shows without a server. It
// sends nothing.
func (c *Controller[P]) check() error {
	nowhere, err := kates.NewClientFromRESTConfig(&rest.Config{Host: "nowhere.invalid"}, c.fleet.options.Client...)
	if err != nil {
		return c.named(err)
	}
	defer nowhere.Close()
	_, err = controller.New(nowhere, c.name, func(context.Context, *P) (controller.Result, error) {
		return controller.Done, nil
	}, c.plan.OfCluster(keyed.OfCluster{})...)
	return err
}

func (c *Controller[P]) named(err error) error {
	return fmt.Errorf("controller %q of %s in a fleet: %w", c.name, reflect.TypeFor[P](), err)
}

// Run reconciles until ctx ends. It returns what [controller.Controller.Run] returns, and
// [kates.ErrClosed] if the fleet is closed. After it has returned it may be called again.
func (c *Controller[P]) Run(ctx context.Context) error {
	if !c.running.CompareAndSwap(false, true) {
		return c.named(controller.ErrRunning)
	}
	defer c.running.Store(false)
	c.inside.Clear()
	c.began.Store(true)
	m := &many{fleet: c.fleet, plan: c.plan, log: c.fleet.log.WithValues("controller", c.name), loop: c.loop}
	return m.start(ctx, c.named)
}

// loop is the controller in one cluster. When that has left, its state is forgotten.
func (c *Controller[P]) loop(p *place, cluster *Cluster, options []kates.RunOption) (run func(context.Context) error, over func()) {
	one, err := controller.New(cluster.client, c.name, func(ctx context.Context, parts *P) (result controller.Result, err error) {
		err = p.within(ctx, cluster, func(ctx context.Context) (err error) {
			result, err = c.reconcile(ctx, cluster, parts)
			return err
		})
		return result, err
	}, options...)
	in := &inside[P]{one: one}
	c.inside.Store(cluster.name, in)
	run = func(ctx context.Context) error {
		if err != nil {
			in.failed.Store(&err)
			return err
		}
		in.failed.Store(nil)
		err := one.Run(ctx)
		if err != nil {
			in.failed.Store(&err)
		}
		return err
	}
	return run, func() {
		if cluster.ctx.Err() != nil {
			c.inside.Delete(cluster.name)
		}
	}
}

// Start is [Controller.Run], under the name that controller-runtime's manager.Runnable has for it.
func (c *Controller[P]) Start(ctx context.Context) error { return c.Run(ctx) }

// NeedLeaderElection implements controller-runtime's manager.LeaderElectionRunnable. It says
// whether a manager starts the controller only where it leads: yes, unless the controller has a
// leader of its own.
func (c *Controller[P]) NeedLeaderElection() bool { return c.plan.Election == nil }

// Trigger reconciles keys though nothing may have changed: see [controller.Controller.Trigger]. It
// does nothing for clusters in which the controller does not run.
func (c *Controller[P]) Trigger(keys ...Key) {
	for _, key := range keys {
		if in, ok := c.inside.Load(key.Cluster); ok && in.(*inside[P]).one != nil {
			in.(*inside[P]).one.Trigger(key.Key)
		}
	}
}

// TriggerAll is [Controller.Trigger] for every key of every cluster.
func (c *Controller[P]) TriggerAll() {
	for _, in := range c.all() {
		if in.one != nil {
			in.one.TriggerAll()
		}
	}
}

// Keys are those of the roots in all clusters, in order: see [controller.Controller.Keys].
func (c *Controller[P]) Keys() (keys []Key) {
	for cluster, in := range c.all() {
		if in.one == nil {
			continue
		}
		for _, key := range in.one.Keys() {
			keys = append(keys, Key{cluster, key})
		}
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Key, b.Key))
	})
	return keys
}

// ControllerStatus is the state of a [Controller] in one cluster. It marshals to JSON.
type ControllerStatus struct {
	// Status counts reconciles since the cluster came, or Run was called. Its Leader is nil: see
	// that of the home cluster's client.
	controller.Status
	// Error is why the controller does not run in the cluster now. It is tried again.
	Error string `json:"error,omitempty"`
}

// Status returns the state of the controller by cluster: of those in which it runs, or is to run.
// After Run it is that of the end, without the clusters that have left before.
func (c *Controller[P]) Status() map[string]ControllerStatus {
	all := make(map[string]ControllerStatus)
	for cluster, in := range c.all() {
		s := ControllerStatus{Status: controller.Status{Name: c.name}}
		if in.one != nil {
			s.Status = in.one.Status()
		}
		if err := in.failed.Load(); err != nil {
			s.Error = (*err).Error()
		}
		all[cluster] = s
	}
	return all
}

// Ready is nil once the controller has been started and each source of the fleet has said which
// clusters there are ([Fleet.Ready]). With a leader election the Lease must have been reached,
// too. A cluster whose watches are not complete is no reason not to be ready: Status says which.
func (c *Controller[P]) Ready() error {
	if !c.began.Load() {
		return c.named(errors.New("it has not been started"))
	}
	if err := c.fleet.Ready(); err != nil {
		return c.named(err)
	}
	if c.plan.Report != nil {
		if err := c.plan.Report.Ready(); err != nil {
			return c.named(err)
		}
	}
	return nil
}

// all are the controllers inside clusters, by the cluster's name.
func (c *Controller[P]) all() map[string]*inside[P] {
	all := make(map[string]*inside[P])
	c.inside.Range(func(cluster, in any) bool {
		all[cluster.(string)] = in.(*inside[P])
		return true
	})
	return all
}
