package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/reach"
	"github.com/kates-go/kates/internal/seam"
)

// Errors of [Controller.Run], for errors.Is.
var (
	// ErrAborted: reconciles had their contexts cancelled, because they were not done within the grace period, or by a
	// second signal.
	ErrAborted = errors.New("reconciles that were under way have been aborted")
	// ErrRunning: the controller runs already.
	ErrRunning = errors.New("it runs already")
)

var errShards = errors.New("its shards have ended")

// run is one Run of a controller.
type run struct {
	*control
	watch   seam.Watch
	aborted chan struct{} // closed by the second signal

	work context.Context // of reconciles

	mu   sync.Mutex
	keys map[string]*held
	over bool // no timers any more
}

// Run reconciles until ctx ends. Then no reconcile begins any more, those that run have the grace period to return ([GracePeriod]), after which
// their contexts are cancelled, and Run returns when all have returned: also one that does not heed its context. The watches, and
// the leader's lease, are kept until then. Nothing that it has started is left when it returns.
//
// What it returns is
//
//   - nil, if ctx was cancelled, or a signal came that [HandleSignals] names; if there has been no snapshot by then, what was missing is logged;
//   - an error for which [errors.Is] says [ErrAborted], if contexts had to be cancelled for that;
//   - one that says so, if a reconcile has ended its goroutine (runtime.Goexit, as FailNow of a test does);
//   - one that is [kates.ErrLeadershipLost], when all reconciles, whose contexts end at once then, have returned;
//   - else an error that says why the watch could not be started (see [kates.Watch]), or has ended: [kates.ErrClosed], or that of ctx if it
//     is a deadline; or [ErrRunning].
//
// After it has returned it may be called again: a follower that has lost its lease does so to follow.
func (c *control) Run(ctx context.Context) error {
	r, err := c.begin()
	if err != nil {
		return c.named(err)
	}
	defer c.finish()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.handleSignals(cancel)()
	watch, end, err := c.open(ctx)
	if err != nil {
		return c.plan.Ended(err, c.endOf(ctx, err))
	}
	defer end()
	defer watch.Close()
	c.mu.Lock()
	r.watch = watch
	c.mu.Unlock()
	defer c.plan.Listen(ctx, watch.ActivateAll)()
	defer r.stopTimers()
	err = c.endOf(ctx, watch.Lead(ctx, r.loop))
	return c.plan.Ended(watch.Ready(), err)
}

func (c *control) begin() (*run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return nil, ErrRunning
	}
	c.running = true
	c.run = &run{control: c, aborted: make(chan struct{}), keys: make(map[string]*held)}
	return c.run, nil
}

func (c *control) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

// open starts a watch that goes on when ctx has ended, until end is called.
func (c *control) open(ctx context.Context) (watch seam.Watch, end func(), err error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	goesOn := context.AfterFunc(ctx, end)
	watch, err = c.plan.Open(life)
	goesOn()
	if err != nil {
		end()
	}
	return watch, end, err
}

func (c *control) named(err error) error {
	return reach.First(fmt.Errorf("controller %q: %w", c.name, err))
}

// endOf is what Run returns for what has ended it: nothing if that was wanted.
func (c *control) endOf(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, ErrAborted) {
		return nil
	}
	return c.named(err)
}

// handleSignals has signals end the run, if that is wanted. What it returns ends that, and waits.
func (r *run) handleSignals(shutDown func()) (stop func()) {
	if r.settings.signals == nil {
		return func() {}
	}
	signals, ended, done := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, r.settings.signals...)
	abort := func() {
		signal.Stop(signals) // the next one has its own effect
		close(r.aborted)
	}
	go func() {
		defer close(done)
		for _, do := range []func(){shutDown, abort} {
			select {
			case s := <-signals:
				r.plan.Log.Info("a signal", "signal", s.String())
				do()
			case <-ended:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(ended)
		<-done
	}
}

// loop reconciles until ctx or the watch ends, and returns when the last reconcile has. The lease's context ends when this replica does not
// lead any more.
func (r *run) loop(ctx, lease context.Context) error {
	work, abort := context.WithCancelCause(lease)
	defer abort(nil)
	taking, stop := context.WithCancel(ctx)
	defer stop()
	r.work = work
	shards, release, err := r.guard(ctx)
	if err != nil {
		return err
	}
	workers := max(1, r.plan.Workers)
	ends := make(chan error)
	for range workers {
		go attempts.Send(ends, func() error { return r.worker(taking) })
	}
	why := r.await(taking, workers, awaited{ends: ends, shards: shards, stop: stop, abort: abort})
	release()
	return why
}

// awaited is what a run waits for, and what it does about it.
type awaited struct {
	ends   <-chan error // of workers
	shards <-chan error // of the keys
	stop   func()       // takes no more keys
	abort  context.CancelCauseFunc
}

// await waits for the workers, and cuts what they do short where that is due. It returns why they have ended.
func (r *run) await(taking context.Context, workers int, w awaited) (why error) {
	stopping, aborted := taking.Done(), r.aborted
	var patience <-chan time.Time
	cut := func(err error) {
		if r.work.Err() == nil && r.counts.running.Load() > 0 {
			why = err
		}
		w.abort(err)
	}
	for workers > 0 {
		select {
		case err := <-w.ends:
			workers--
			w.stop()
			if why == nil {
				why = err
			}
		case <-stopping:
			stopping, patience = nil, time.After(r.settings.grace)
		case <-patience:
			patience = nil
			cut(fmt.Errorf("%w after a grace period of %s", ErrAborted, r.settings.grace))
		case <-aborted:
			aborted = nil
			cut(fmt.Errorf("%w by a second signal", ErrAborted))
		case err := <-w.shards:
			w.shards = nil
			w.stop()
			w.abort(err)
			why = err
		}
	}
	return why
}

// guard makes this replica a shard, if it is to be one. What it returns ends that, and waits, for when nothing is reconciled any more.
func (r *run) guard(ctx context.Context) (ended <-chan error, release func(), err error) {
	if r.plan.Shards == nil {
		return nil, func() {}, nil
	}
	if err := r.watch.Complete(ctx); err != nil {
		return nil, nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	failed, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		err := r.plan.Shards.Run(life, r.watch)
		if life.Err() != nil {
			return
		}
		if err == nil {
			err = errShards
		}
		failed <- err
	}()
	return failed, func() {
		cancel()
		<-done
	}, nil
}
