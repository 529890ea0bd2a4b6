package fleet

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

// HomeController reconciles roots that live in a home cluster and have parts in the clusters of a
// fleet. [NewHomeController] makes one. Its methods are those of a [controller.Controller].
type HomeController[H, R any] struct {
	*controller.Controller[H]
	home *home
}

// Parts are what belongs to a root.
type Parts[H, R any] struct {
	// Home has the root, and what belongs to it in the home cluster.
	Home *H
	// Clusters have what belongs to the root in each cluster: all that are complete, also those
	// that have nothing of it.
	Clusters map[string]*R
	// Missing are clusters that are not among Clusters, or are there and may be outdated. If the
	// sources of the fleet have not said yet which clusters there are, one without a name says so.
	Missing []Missing

	home *home
	info controller.Info
	from map[string]pulled
}

// NewHomeController makes a controller of roots in a home cluster whose parts are in other
// clusters:
//
//	type App struct {
//	    Root *v1.App         `kates:",root"`  // in the home cluster
//	    Info controller.Info                  // is required
//	}
//	type Placed struct {
//	    Deployments []*appsv1.Deployment      // in one cluster: what the root owns there
//	    Quotas      []*corev1.ResourceQuota   // with a Query.Key: what has the root's key
//	}
//	apps, err := fleet.NewHomeController(f, home, "apps", func(ctx context.Context, p *fleet.Parts[App, Placed]) (controller.Result, error) {
//	    for cluster := range p.Clusters {
//	        _, err := p.ApplyOwned(ctx, cluster, kates.OwnedSet{SetName: "apps", Objects: wanted(p.Home.Root)})
//	        ...
//	    }
//	}, kates.Query{Name: "Quotas", Key: kates.ByLabel("app")})
//
// H is a struct of package controller, and the rules there say when a root is reconciled. It is
// reconciled, too, when something that belongs to it changes in any cluster, and all roots are
// when a cluster comes, is complete, goes, or becomes stale or well again.
//
// The fields of R are slices of objects. A query that has a Key gives its field the objects of the
// root's key. Any other field has what the root owns in the cluster: the objects of a
// [kates.OwnedSet] that is Remote, whose label has the root's UID. Only objects with that label
// are watched.
//
// A reconcile sees what it has written before, in every cluster: what R has is taken when the
// function is called. Between clusters there is no order. The first reconcile waits as the first
// snapshot of [Watch] does, for each cluster until Options.Deadline. A cluster that fails holds up
// nothing after that.
//
// Options are those of [controller.New]. A query is about the field of its name, in H or in R. The
// Lease of a [kates.LeaderElection] is in the home cluster. Writes to other clusters are not sent
// when that lease is over; their preconditions are about what is known when they are sent.
func NewHomeController[H, R any](f *Fleet, client *kates.Client, name string, reconcile func(ctx context.Context, p *Parts[H, R]) (controller.Result, error), options ...kates.RunOption) (*HomeController[H, R], error) {
	fail := func(err error) (*HomeController[H, R], error) {
		return nil, fmt.Errorf("controller %q of a fleet: %w", name, err)
	}
	switch {
	case f == nil:
		return fail(errors.New("the fleet is nil"))
	case reconcile == nil:
		return fail(errors.New("there is no function to call"))
	}
	info, err := infoOf(reflect.TypeFor[H]())
	if err != nil {
		return fail(err)
	}
	options, queries, err := split(options, reflect.TypeFor[H](), reflect.TypeFor[R]())
	if err != nil {
		return fail(err)
	}
	h := &home{fleet: f, typ: reflect.TypeFor[R](), moved: make(chan struct{}, 1)}
	if err := h.read(queries); err != nil {
		return fail(err)
	}
	c, err := controller.New(client, name, func(ctx context.Context, p *H) (controller.Result, error) {
		parts := &Parts[H, R]{Home: p, home: h, info: reflect.ValueOf(p).Elem().FieldByIndex(info).Interface().(controller.Info)}
		if err := parts.pull(ctx); err != nil {
			return controller.Done, err
		}
		return reconcile(ctx, parts)
	}, options...)
	if err != nil {
		return nil, err
	}
	h.trigger, h.triggerAll = c.Trigger, c.TriggerAll
	return &HomeController[H, R]{c, h}, nil
}

// Run reconciles until ctx ends, see [controller.Controller.Run]. The watches of all clusters go
// on until the last reconcile has returned. If the fleet is closed, the error is
// [kates.ErrClosed].
func (c *HomeController[H, R]) Run(ctx context.Context) error {
	return c.home.run(ctx, c.Controller.Run)
}

// Start is Run.
func (c *HomeController[H, R]) Start(ctx context.Context) error { return c.Run(ctx) }

// infoOf returns the index of the field that says which root it is.
func infoOf(t reflect.Type) ([]int, error) {
	if t.Kind() == reflect.Struct {
		for _, sf := range reflect.VisibleFields(t) {
			if sf.Type == reflect.TypeFor[controller.Info]() && sf.IsExported() {
				return sf.Index, nil
			}
		}
	}
	return nil, fmt.Errorf("%s has no field of type controller.Info", t)
}

// split returns the options of the controller, and the queries of the other clusters.
func split(options []kates.RunOption, home, remote reflect.Type) (own []kates.RunOption, queries []kates.Query, err error) {
	if remote.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("what belongs to a root in a cluster is a struct, not %s", remote)
	}
	for _, o := range options {
		q, ok := o.(kates.Query)
		_, there := remote.FieldByName(q.Name)
		if !ok || !there {
			own = append(own, o)
			continue
		}
		if _, both := home.FieldByName(q.Name); both {
			return nil, nil, fmt.Errorf("query %q: both %s and %s have a field of that name", q.Name, home, remote)
		}
		if slices.ContainsFunc(queries, func(other kates.Query) bool { return other.Name == q.Name }) {
			return nil, nil, fmt.Errorf("query %q: there are two of that name", q.Name)
		}
		queries = append(queries, q)
	}
	return own, queries, nil
}

// pull takes what belongs to the root now. The first pull of a reconcile is its beginning.
func (p *Parts[H, R]) pull(ctx context.Context) error {
	var root kates.Object = p.info.Root
	all, missing, err := p.home.pull(ctx, p.info.Key, root.GetUID(), p.Clusters == nil)
	if err != nil {
		return err
	}
	p.Clusters, p.from, p.Missing = make(map[string]*R, len(all)), all, missing
	for cluster, it := range all {
		p.Clusters[cluster] = it.value.Addr().Interface().(*R)
	}
	return nil
}
