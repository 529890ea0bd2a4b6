package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
)

// ErrRunning is an error of [Controller.Run]: the controller runs already.
var ErrRunning = errors.New("it runs already")

// watch hands out the turns of roots.
type watch = keyed.Roots[kates.Status]

// run is one Run of a controller: the work of its loop.
type run struct {
	*control
	watch watch
	loop  *keyed.Loop[*keyed.Root]

	mu   lockorder.Mutex[lockorder.ControllerRun]
	keys map[string]*held
}

// Run reconciles until ctx ends. Then no reconcile begins any more, and those under way have the
// shutdown timeout to return ([kates.WithShutdownTimeout]); after it their contexts are cancelled.
// Run returns when all have returned, also one that ignores its context. It keeps the watches, and
// the leader's lease, until then. Nothing that it has started is left when it returns.
//
// It returns
//
//   - nil, if ctx was cancelled, or a signal came that [kates.WithSignals] names; if there has been
//     no snapshot by then, what was missing is logged;
//   - an error for which [errors.Is] says [kates.ErrAborted], if contexts had to be cancelled for
//     that;
//   - one that says so, if a reconcile has ended its goroutine (runtime.Goexit, as FailNow of a
//     test does);
//   - one that is [kates.ErrLeadershipLost], when all reconciles, whose contexts end at once then,
//     have returned;
//   - with a [kates.LeaderElection], an error that is [kates.ErrNeverLed], too, if it has not led;
//   - else an error that says why the watch could not be started (see [kates.Watch]), or has ended:
//     [kates.ErrClosed], or that of ctx if it is a deadline; or [ErrRunning].
//
// After it has returned it may be called again: a leader that has lost its lease does so to
// follow.
func (c *control) Run(ctx context.Context) error {
	r, err := c.begin()
	if err != nil {
		return c.named(err)
	}
	defer c.finish()
	ctx, grace, stop, err := c.plan.Shutdown.Begin(ctx, c.plan.Log)
	if err != nil {
		return c.named(err)
	}
	defer stop()
	watch, end, err := keyed.Outlive(ctx, grace, c.plan.Open)
	if err != nil {
		return keyed.Lacking(c.plan.Log, err, c.endOf(ctx, c.plan.Config.Unstarted(err)))
	}
	defer end()
	defer watch.Close()
	c.mu.Lock()
	r.watch = watch
	r.loop = &keyed.Loop[*keyed.Root]{
		Config: c.plan.Config, Source: watch, Work: r, Grace: grace,
	}
	c.mu.Unlock()
	err = c.endOf(ctx, r.loop.Run(ctx))
	return keyed.Lacking(c.plan.Log, watch.Ready(), err)
}

func (c *control) begin() (*run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return nil, ErrRunning
	}
	c.running = true
	c.run = &run{control: c, keys: make(map[string]*held)}
	return c.run, nil
}

func (c *control) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

func (c *control) named(err error) error {
	return reach.First(fmt.Errorf("controller %q: %w", c.name, err))
}

// endOf is what Run returns: nil if its end was wanted.
func (c *control) endOf(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, kates.ErrAborted) {
		return nil
	}
	return c.named(err)
}
