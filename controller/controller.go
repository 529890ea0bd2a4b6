package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
)

// Controller reconciles the roots of a struct type P. [New] makes one; all its methods are safe
// for concurrent use.
type Controller[P any] struct{ *control }

// control is a controller of any struct type.
type control struct {
	name   string
	client *kates.Client
	plan   *keyed.Plan[kates.Status]
	handle *kates.Handle
	call   func(context.Context, reflect.Value) (Result, error)
	counts counts

	mu      lockorder.Mutex[lockorder.Control]
	running bool
	run     *run // the one that runs, or the last one
}

// New makes a controller, which [Controller.Run] runs. For each object of the root's kind it calls
// a function with a struct that has the object and what belongs to it. See the package's
// documentation for P, and for when the function is called.
//
// The name tells controllers apart in logs, errors and status. The options are those of
// [kates.RunEach] (queries that refine fields by their names, watch options, [kates.WithWorkers],
// [kates.WithBackoff], [kates.WithOnError], [kates.WithTriggers], [kates.LeaderElection],
// [kates.Sharding]), [kates.WithShutdownTimeout] and [kates.WithSignals].
//
// What is wrong with P or an option is an error here. What only the server knows (what a kind's
// name means, whether it is served) is an error of Run. New sends nothing.
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
	handle := new(kates.Handle)
	plan, err := doors.Controller(c, name, t, reflect.TypeFor[Info](), append(slices.Clone(options), handle))
	if err != nil {
		return fail(err)
	}
	return &Controller[P]{&control{
		name: name, client: c, plan: plan.(*keyed.Plan[kates.Status]), handle: handle,
		call: func(ctx context.Context, p reflect.Value) (Result, error) { return f(ctx, p.Addr().Interface().(*P)) },
	}}, nil
}

// Trigger reconciles keys though nothing may have changed: "namespace/name" of a root, or its
// name. A key that is being reconciled, or waits for a backoff, is reconciled after that. Trigger
// does nothing for keys without a root, and while the controller does not run: it reconciles all
// roots when it starts. It does not reach other replicas ([kates.LeaderElection],
// [kates.Sharding]).
func (c *control) Trigger(keys ...string) {
	if r := c.latest(); r != nil {
		r.watch.Trigger(keys...)
	}
}

// TriggerAll is [Controller.Trigger] for every key.
func (c *control) TriggerAll() {
	if r := c.latest(); r != nil {
		r.watch.TriggerAll()
	}
}

// Add adds queries while the controller runs, for fields of the struct that have none: those with
// the tag `kates:",later"`, and those whose query [Controller.Remove] has removed. See
// [kates.Handle]. The error is [kates.ErrNotRunning] while it does not run.
func (c *control) Add(ctx context.Context, queries ...kates.Query) error {
	return c.runs(c.handle.Add(ctx, queries...))
}

// Remove removes the queries of these names while the controller runs. The root cannot be removed.
func (c *control) Remove(ctx context.Context, names ...string) error {
	return c.runs(c.handle.Remove(ctx, names...))
}

// Replace replaces the queries of these names while the controller runs, all of them for the same
// reconciles. Roots whose objects change by that are reconciled. Those that a new query of the
// root does not show any more depart, if they do not exist either: see the package's
// documentation.
func (c *control) Replace(ctx context.Context, queries ...kates.Query) error {
	return c.runs(c.handle.Replace(ctx, queries...))
}

// Change replaces the query of a name by what a function makes of it, while the controller runs,
// and so keeps what the function does not change: see [kates.Accumulator.Change]. What holds for
// [Controller.Replace] holds here, too.
func (c *control) Change(ctx context.Context, name string, change func(*kates.Query)) error {
	return c.runs(c.handle.Change(ctx, name, change))
}

func (c *control) runs(err error) error {
	if err == nil {
		return nil
	}
	return c.named(err)
}

// Start is [Controller.Run], under the name that controller-runtime's manager.Runnable has for it.
func (c *control) Start(ctx context.Context) error { return c.Run(ctx) }

// NeedLeaderElection implements controller-runtime's manager.LeaderElectionRunnable. It says
// whether a manager starts the controller only where it leads: yes, unless the controller has a
// leader, or shards, of its own.
func (c *control) NeedLeaderElection() bool { return c.plan.Election == nil && c.plan.Shards == nil }
