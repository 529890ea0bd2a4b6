package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/keyed"
	objects "github.com/kates-go/kates/internal/object"
)

// Run calls a function with snapshots of type S (see [Watch]): with the first complete one, and
// then, whenever something has changed, with the current one. It is the loop of a program that
// has one output for all of its inputs.
//
//	err := kates.Run(ctx, client, func(ctx context.Context, snap *Snapshot) error {
//	    return rebuild(ctx, snap) // may take as long as it likes
//	}, kates.Query{Name: "Services", Namespace: "prod"}, kates.WithInterval(time.Second), kates.WithTriggers(ticker.C))
//
// The options are queries, which refine fields as those of [Watch] do, watch options
// ([WithInterval], [WithDebounce], …), and [WithBackoff], [WithTriggers], [WithOnError],
// [WithSignals], [WithShutdownTimeout] and [LeaderElection].
//
// One goroutine, that of Run, calls the function: never twice at a time. What changes during a
// call is in the next one, which comes with the next signal: [WithInterval] and [WithDebounce] say
// when. Each snapshot is a fresh *S and the caller's; its objects are shared and read-only. The
// function's context ends when Run's does, unless [WithShutdownTimeout] says otherwise.
//
// An error of the function means another try with the newest snapshot, after the backoff, however
// much changes meanwhile. A panic is such an error, a [*PanicError]. [Permanent] marks an error
// that ends Run, and [Again] and [AgainWithBackoff] ask for another call. Errors are logged when
// they begin and when they are over, with the number of tries; WithOnError gets each of them. A
// field of []*[Delta] says what has changed since the last snapshot for which the function
// returned no error: another try has the deltas of the one before, too. Like all snapshots of a
// client, those of Run are ready ([Client.Ready]) when the first is complete, whatever the
// function does with it, and their watches are in [Client.Status].
//
// Run returns when the function does not run any more:
//
//   - nil, if ctx was cancelled, or a signal came that [WithSignals] names; if there has been no
//     snapshot by then, what was missing is logged;
//   - [ErrAborted], if a call did not end within its [WithShutdownTimeout];
//   - the error that was marked as permanent, as it is;
//   - an error for which [errors.Is] says [ErrLeadershipLost], see [LeaderElection];
//   - with a LeaderElection, an error that is [ErrNeverLed], too, if it has not led;
//   - else one that names S and says why the watch could not be started (see [Watch]), or has
//     ended: [ErrClosed], or that of ctx if it is a deadline.
//
// Nothing that it has started is left when it returns.
func Run[S any](ctx context.Context, c *Client, f func(context.Context, *S) error, options ...RunOption) error {
	t := reflect.TypeFor[S]()
	r, err := begin(ctx, c, "run", t, f == nil, options, func(s *runSettings) error {
		switch {
		case s.workers > 0:
			return errors.New("WithWorkers is an option of RunEach: one snapshot has one function")
		case s.sharding != nil:
			return errors.New("Sharding is an option of RunEach: one snapshot has no keys")
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer r.end()
	snapshots, end, err := keyed.Outlive(r.ctx, r.grace, func(life context.Context) (*Snapshots[S], error) {
		return Watch[S](life, c.With(r.watch...), r.queries...)
	})
	if err != nil {
		return r.ended(err, r.config.Unstarted(err))
	}
	defer end()
	defer snapshots.Close()
	current := currentOf[S]{Accumulator: snapshots.acc, of: snapshots}
	if snapshots.deltas != nil {
		current.changes = newChanges(t)
	}
	whole := keyed.NewWhole(r.config, r.grace, current, func(ctx context.Context, snap *S) error { return f(c.withHorizon(ctx), snap) })
	bind(r.handles, handledRun[S]{snapshots, whole})
	err = whole.Run(r.ctx)
	return r.ended(snapshots.Ready(), err)
}

// begun is a Run or a RunEach that has begun.
type begun struct {
	*runSettings
	typ    reflect.Type
	config keyed.Config
	ctx    context.Context // of the run
	grace  *keyed.Grace
	end    func() // of the run
}

// begin reads the options of a run, and begins it. what names the run in errors.
func begin(
	ctx context.Context, c *Client, what string, t reflect.Type, noFunction bool, options []RunOption, check func(*runSettings) error,
) (*begun, error) {
	fail := func(err error) (*begun, error) { return nil, fmt.Errorf("%s %s: %w", what, objects.TypeName(t), err) }
	settings, err := newRunSettings(c, noFunction, options)
	if err == nil {
		err = check(settings)
	}
	if err != nil {
		return fail(err)
	}
	release, err := take(settings.handles)
	if err != nil {
		return fail(err)
	}
	r := &begun{runSettings: settings, typ: t, config: settings.config(c, t.String(), settings.logOf(c, "run", t.String()))}
	var stop func()
	if r.ctx, r.grace, stop, err = r.config.Shutdown.Begin(ctx, r.config.Log); err != nil {
		release()
		return fail(err)
	}
	r.end = func() {
		stop()
		release()
	}
	return r, nil
}

// ended is what a run returns: nil if its end was wanted. missing is what no snapshot has had.
func (r *begun) ended(missing, err error) error {
	if last, final := attempts.Final(err); final {
		err = last
	} else if errors.Is(r.ctx.Err(), context.Canceled) && !errors.Is(err, ErrAborted) {
		err = nil
	} else {
		err = reach.First(fmt.Errorf("run %s: %w", objects.TypeName(r.typ), err))
	}
	return keyed.Lacking(r.config.Log, missing, err)
}

// handledRun is a run as its [Handle] controls it. It has no keys.
type handledRun[S any] struct {
	*Snapshots[S]
	loop *keyed.Whole[*S]
}

func (h handledRun[S]) Trigger(...string) {}
func (h handledRun[S]) TriggerAll()       { h.loop.Trigger() }

// currentOf are the snapshots of a run. It is a [keyed.Snapshots].
type currentOf[S any] struct {
	*accumulator.Accumulator
	of      *Snapshots[S]
	changes *changes // nil if S has no field for deltas
}

// Current implements [keyed.Snapshots]. Deltas are about the last snapshot that was handled.
func (c currentOf[S]) Current(ctx context.Context) (snap *S, changed, complete bool, err error) {
	snap = new(S)
	if changed, complete, err = c.of.update(ctx, snap); err != nil {
		return nil, false, false, c.of.because(err)
	}
	if complete && c.changes != nil {
		field := reflect.ValueOf(snap).Elem().FieldByIndex(c.of.deltas)
		c.changes.add(field.Interface().([]*Delta))
		field.Set(reflect.ValueOf(c.changes.deltas()))
	}
	return snap, changed, complete, nil
}

// Handled implements [keyed.Snapshots].
func (c currentOf[S]) Handled() {
	if c.changes != nil {
		c.changes.clear()
	}
}

// ErrNotRunning is the error of methods of a [Handle], or of a controller, outside of a run:
// before its watches have started, and after its end.
var ErrNotRunning = errors.New("the run has not started to watch, or has ended")

// A Handle changes the queries of a [Run], a [RunEach] or a controller while it runs, and has its
// function called. It is an option of the run:
//
//	h := new(kates.Handle)
//	go func() { ended <- kates.Run(ctx, client, rebuild, h) }()
//	...
//	err := h.Replace(ctx,
//	    kates.Query{Name: "Ingresses", Namespaces: namespaces},
//	    kates.Query{Name: "Services", Namespaces: namespaces})
//
// A handle is of one run at a time. Each run begins with the queries of its options: what a handle
// has changed ends with the run. All methods are safe for concurrent use, also in the function of
// the run.
type Handle struct {
	mu      lockorder.Mutex[lockorder.RunHandle]
	claimed bool
	of      handled // nil outside of a run
}

// handled is what a handle controls.
type handled interface {
	Add(ctx context.Context, queries ...Query) error
	Remove(ctx context.Context, names ...string) error
	Replace(ctx context.Context, queries ...Query) error
	Change(ctx context.Context, name string, change func(*Query)) error
	Trigger(keys ...string)
	TriggerAll()
	Ready() error
	Status() Status
}

func (h *Handle) applyToRun(s *runSettings) {
	if h == nil {
		s.reject(errors.New("a handle is nil"))
		return
	}
	s.handles = append(s.handles, h)
}

// Add adds queries, for fields of the struct that have none: see [Snapshots.Add]. For a RunEach or
// a controller see [Partitions.Add].
func (h *Handle) Add(ctx context.Context, queries ...Query) error {
	return h.do(func(of handled) error { return of.Add(ctx, queries...) })
}

// Remove removes the queries of these names: see [Accumulator.Remove]. The root of a controller,
// and the last query with a Key of a RunEach, cannot be removed.
func (h *Handle) Remove(ctx context.Context, names ...string) error {
	return h.do(func(of handled) error { return of.Remove(ctx, names...) })
}

// Replace replaces the queries of these names, all in one snapshot: see [Accumulator.Replace] and
// [Snapshots.Replace]. For a RunEach or a controller see [Partitions.Replace].
func (h *Handle) Replace(ctx context.Context, queries ...Query) error {
	return h.do(func(of handled) error { return of.Replace(ctx, queries...) })
}

// Change replaces the query of a name by what a function makes of it, and so keeps what the
// function does not change: see [Accumulator.Change]. For a RunEach or a controller see
// [Partitions.Change].
func (h *Handle) Change(ctx context.Context, name string, change func(*Query)) error {
	return h.do(func(of handled) error { return of.Change(ctx, name, change) })
}

// Trigger has the function of a RunEach or a controller called for some keys, though nothing may
// have changed: see [Partitions.Trigger]. A Run has no keys: there it does nothing. Outside of a
// run it does nothing either: a run begins with a call, or one for each key.
func (h *Handle) Trigger(keys ...string) {
	_ = h.do(func(of handled) error {
		of.Trigger(keys...)
		return nil
	})
}

// TriggerAll has the function called for all keys, or, of a Run, called again.
func (h *Handle) TriggerAll() {
	_ = h.do(func(of handled) error {
		of.TriggerAll()
		return nil
	})
}

// Ready is nil once the first snapshot of the run is complete: see [Accumulator.Ready]. Outside of
// a run it is [ErrNotRunning].
func (h *Handle) Ready() error { return h.do(func(of handled) error { return of.Ready() }) }

// Status is the state of the run's watches: see [Accumulator.Status]. Outside of a run it is
// empty.
func (h *Handle) Status() (s Status) {
	_ = h.do(func(of handled) error {
		s = of.Status()
		return nil
	})
	return s
}

// do does something with what runs.
func (h *Handle) do(what func(handled) error) error {
	h.mu.Lock()
	of := h.of
	h.mu.Unlock()
	if of == nil {
		return ErrNotRunning
	}
	return what(of)
}

// take makes handles those of a run that begins. They are free after release.
func take(handles []*Handle) (release func(), err error) {
	var taken []*Handle
	release = func() {
		for _, h := range taken {
			h.set(false, nil)
		}
	}
	for _, h := range handles {
		h.mu.Lock()
		claimed := h.claimed
		h.claimed = true
		h.mu.Unlock()
		if claimed {
			release()
			return nil, errors.New("its handle is that of another run, which has not ended")
		}
		taken = append(taken, h)
	}
	return release, nil
}

// bind has handles control what runs.
func bind(handles []*Handle, of handled) {
	for _, h := range handles {
		h.set(true, of)
	}
}

func (h *Handle) set(claimed bool, of handled) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claimed, h.of = claimed, of
}
