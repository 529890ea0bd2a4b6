package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/kates-go/kates/internal/seam"
	"github.com/kates-go/kates/kates"
)

// Controller reconciles the roots of a struct type P. [New] makes one; all its methods may be called from anywhere.
type Controller[P any] struct{ *control }

// control is a controller of any struct type.
type control struct {
	name     string
	client   *kates.Client
	plan     *seam.Plan
	settings settings
	call     func(context.Context, reflect.Value) (Result, error)
	counts   counts

	mu      sync.Mutex
	running bool
	run     *run // the one that runs, or the last one
}

// New makes a controller that [Controller.Run] runs: for each object of the root's kind it calls a function with a struct that has the
// object and what belongs to it. See the package's documentation for P and for when that is.
//
// The name tells controllers apart in logs, errors and status. The options are those of [kates.RunEach] (queries that refine fields by their
// names, watch options, [kates.Workers], [kates.WithBackoff], [kates.OnError], [kates.AlsoOn], [kates.LeaderElection], [kates.Sharding]), and of this package.
//
// What is wrong with P or an option is an error here, but for what only the server knows (what a kind's name means, whether it is
// served), which is an error of Run. Nothing is sent.
func New[P any](c *kates.Client, name string, f func(context.Context, *P) (Result, error), options ...kates.RunOption) (*Controller[P], error) {
	t := reflect.TypeFor[P]()
	fail := func(err error) (*Controller[P], error) {
		return nil, fmt.Errorf("controller %q of %s: %w", name, t, err)
	}
	switch {
	case name == "":
		return fail(errors.New("it has no name"))
	case f == nil:
		return fail(errors.New("there is no function to call"))
	}
	plan, err := seam.New(c, name, t, reflect.TypeFor[Info](), options)
	if err != nil {
		return fail(err)
	}
	own, err := newSettings(plan.Own)
	if err != nil {
		return fail(err)
	}
	return &Controller[P]{&control{
		name: name, client: c, plan: plan, settings: own,
		call: func(ctx context.Context, p reflect.Value) (Result, error) { return f(ctx, p.Addr().Interface().(*P)) },
	}}, nil
}

// Trigger has keys reconciled though nothing may have changed: "namespace/name" of a root, or its name. What is being reconciled, or waits for
// a backoff, is reconciled after that. Keys that there is no root of, and a controller that does not run, ignore it: all roots are
// reconciled when it starts. What is another replica's ([kates.LeaderElection], [kates.Sharding]) that one is not told of.
func (c *control) Trigger(keys ...string) {
	if r := c.latest(); r != nil {
		r.watch.Activate(keys...)
	}
}

// TriggerAll is [Controller.Trigger] for every key.
func (c *control) TriggerAll() {
	if r := c.latest(); r != nil {
		r.watch.ActivateAll()
	}
}

// Start is [Controller.Run], by the name that controller-runtime's manager.Runnable has for it.
func (c *control) Start(ctx context.Context) error { return c.Run(ctx) }

// NeedLeaderElection says, as controller-runtime's manager.LeaderElectionRunnable, whether a manager is to start the controller only
// where it leads: yes, unless the controller has a leader, or shards, of its own.
func (c *control) NeedLeaderElection() bool { return !c.plan.Elected && c.plan.Shards == nil }
