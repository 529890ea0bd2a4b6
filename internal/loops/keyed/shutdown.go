package keyed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/base/tested"
)

// ErrAborted is the error of a loop that had to cancel the contexts of calls under way.
var ErrAborted = errors.New("calls under way have been aborted")

// AtOnce is the timeout of a shutdown that cancels the contexts of calls with that of the loop,
// which is no error.
const AtOnce time.Duration = -1

// ControllerTimeout is the shutdown timeout of controllers, if no option sets it.
const ControllerTimeout = 20 * time.Second

// Shutdown says how a loop ends.
type Shutdown struct {
	Timeout time.Duration // for calls under way, or AtOnce
	Signals []os.Signal   // that shut down; nil: none
	Whole   *Grace        // with AtOnce: that of the whole of which the loop is a part, or nil
}

// Grace lets calls go on when the loop ends.
type Grace struct {
	Period  time.Duration
	Aborted <-chan struct{} // closed when the period is to end at once
}

// ErrSignalsInABubble is the error of a run that is to listen to signals in a bubble. The runtime
// sends a signal from outside of the bubble, which ends the process.
var ErrSignalsInABubble = errors.New("WithSignals: signals cannot come into a bubble of testing/synctest: leave the option out there, and end the context")

// Begin begins a run of a loop. Its context ends with ctx, or at the first signal. grace is nil if
// the calls' contexts end with it. stop is called at the end of the run, and waits.
func (s Shutdown) Begin(ctx context.Context, log logr.Logger) (run context.Context, grace *Grace, stop func(), err error) {
	if s.Signals != nil && tested.InBubble() {
		return nil, nil, nil, ErrSignalsInABubble
	}
	run, cancel := context.WithCancel(ctx)
	aborted := make(chan struct{})
	grace = s.Whole
	if s.Timeout >= 0 {
		grace = &Grace{Period: s.Timeout, Aborted: aborted}
	}
	deaf := s.listen(log, cancel, func() { close(aborted) })
	return run, grace, func() {
		deaf()
		cancel()
	}, nil
}

// listen calls the functions, one for each signal. stop ends that, and waits.
func (s Shutdown) listen(log logr.Logger, first, second func()) (stop func()) {
	if s.Signals == nil {
		return func() {}
	}
	signals, ended, done := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, s.Signals...)
	abort := func() {
		signal.Stop(signals) // the next one has its own effect
		second()
	}
	go func() {
		defer close(done)
		for _, do := range []func(){first, abort} {
			select {
			case s := <-signals:
				log.Info("a signal", "signal", s.String())
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

// Outlive calls open with a context that goes on when ctx has ended, until end is called. If ctx
// ends while open runs, so does that context. A nil grace opens with ctx itself.
func Outlive[T any](ctx context.Context, g *Grace, open func(life context.Context) (T, error)) (t T, end func(), err error) {
	if g == nil {
		t, err = open(ctx)
		return t, func() {}, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	goesOn := context.AfterFunc(ctx, end)
	t, err = open(life)
	goesOn()
	if err != nil {
		end()
	}
	return t, end, err
}

// timeout and second are the errors of calls that were cut short.
func (g *Grace) timeout() error {
	return fmt.Errorf("%w after a shutdown timeout of %s", ErrAborted, g.Period)
}

func (g *Grace) second() error { return fmt.Errorf("%w by a second signal", ErrAborted) }

// Extend returns the context of a loop's calls. That context ends with the one named lease. When
// ctx ends, the grace period begins, and the context ends after that period. With a nil Grace the
// context is ctx. The caller calls stop when no call runs any more. stop returns [ErrAborted] if
// calls were cut short because the period was over. running says whether a call runs; any goroutine
// may ask.
func (g *Grace) Extend(ctx, lease context.Context, running func() bool) (calls context.Context, stop func() error) {
	if g == nil {
		return ctx, func() error { return nil }
	}
	calls, abort := context.WithCancelCause(lease)
	ended, why := make(chan struct{}), make(chan error, 1)
	go func() {
		why <- g.await(ctx, ended, running, abort)
	}()
	return calls, func() error {
		close(ended)
		defer abort(nil)
		return <-why
	}
}

// await aborts calls when the grace is over, unless they have ended before.
func (g *Grace) await(ctx context.Context, ended <-chan struct{}, running func() bool, abort context.CancelCauseFunc) (why error) {
	aborted := g.Aborted
	select {
	case <-ctx.Done():
	case <-ended:
		return nil
	}
	patience := time.NewTimer(g.Period)
	defer patience.Stop()
	select {
	case <-ended:
		return nil
	case <-patience.C:
		why = g.timeout()
	case <-aborted:
		why = g.second()
	}
	if !running() { // nothing is cut short
		why = nil
	}
	abort(cmp.Or(why, context.Canceled))
	<-ended
	return why
}
