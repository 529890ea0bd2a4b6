package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/internal/loops/lease"
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
	settings, err := newRunSettings(c, f == nil, options)
	if err == nil && settings.workers > 0 {
		err = errors.New("WithWorkers is an option of RunEach: one snapshot has one function")
	}
	if err == nil && settings.sharding != nil {
		err = errors.New("Sharding is an option of RunEach: one snapshot has no keys")
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", objects.TypeName(t), err)
	}
	release, err := take(settings.handles)
	if err != nil {
		return fmt.Errorf("run %s: %w", objects.TypeName(t), err)
	}
	defer release()
	config := settings.config(c, t.String(), c.core.Log.WithValues("run", t.String()))
	ctx, grace, stop, err := config.Shutdown.Begin(ctx, config.Log)
	if err != nil {
		return fmt.Errorf("run %s: %w", t, err)
	}
	defer stop()
	snapshots, end, err := keyed.Outlive(ctx, grace, func(life context.Context) (*Snapshots[S], error) {
		return Watch[S](life, c.With(settings.watch...), settings.queries...)
	})
	if err != nil {
		return keyed.Lacking(config.Log, err, endOfRun(ctx, t, config.Unstarted(err)))
	}
	defer end()
	defer snapshots.Close()
	r := &runner[S]{
		call: f, begin: c.withHorizon, snapshots: snapshots, triggered: make(chan struct{}, 1), due: true,
		tries: keyed.Tries{Policy: &config.Policy, Log: config.Log, Calls: config.Calls},
	}
	if snapshots.deltas != nil {
		r.changes = newChanges(t)
	}
	bind(settings.handles, handledRun[S]{snapshots, r})
	defer config.Calls.Begin()()
	defer keyed.Listen(ctx, config.Triggers, r.trigger)()
	err = config.Standing(ctx, func() error {
		if config.Election == nil {
			return r.within(ctx, context.WithoutCancel(ctx), grace)
		}
		return lease.Lead(ctx, *config.Election, keyed.Leader{
			Watch: following[S]{snapshots.acc, r}, Triggered: r.triggered, Log: config.Log, Backoff: config.Policy.Backoff,
			Work: func(ctx, lease context.Context) error { return r.within(ctx, lease, grace) },
		})
	})
	return keyed.Lacking(config.Log, snapshots.Ready(), endOfRun(ctx, t, err))
}

// handledRun is a run as its [Handle] controls it. It has no keys.
type handledRun[S any] struct {
	*Snapshots[S]
	of *runner[S]
}

func (h handledRun[S]) Trigger(...string) {}
func (h handledRun[S]) TriggerAll()       { h.of.trigger() }

// following is a run's watch, whose snapshots a follower keeps up to date.
type following[S any] struct {
	*accumulator.Accumulator
	of *runner[S]
}

// Refresh implements [keyed.Watch].
func (f following[S]) Refresh(ctx context.Context) error {
	_, _, err := f.of.current(ctx)
	return err
}

// endOfRun is what Run returns: nil if its end was wanted.
func endOfRun(ctx context.Context, t reflect.Type, err error) error {
	if last, final := attempts.Final(err); final {
		return last
	}
	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, ErrAborted) {
		return nil
	}
	return reach.First(fmt.Errorf("run %s: %w", objects.TypeName(t), err))
}

// runner is one Run. All of it belongs to the goroutine of Run, except that triggers send to
// triggered.
type runner[S any] struct {
	call      func(context.Context, *S) error
	begin     func(context.Context) context.Context
	snapshots *Snapshots[S]
	tries     keyed.Tries
	changes   *changes         // nil if S has no field for deltas
	triggered chan struct{}    // by another trigger
	due       bool             // the function is to be called, though nothing may have changed
	later     <-chan time.Time // the function has asked to be called then; nil: it has not
}

// within is loop, with the grace that calls have at the end, as long as there is a lease.
func (r *runner[S]) within(ctx, lease context.Context, g *keyed.Grace) (err error) {
	calls, stop := g.Extend(ctx, lease)
	defer func() { err = cmp.Or(stop(), err) }() // also if the function ends its goroutine
	return r.loop(ctx, calls)
}

// loop calls the function until ctx or the watch ends, or an error is permanent. Calls have a
// context of their own.
func (r *runner[S]) loop(ctx, calls context.Context) error {
	for {
		select {
		case <-r.triggered:
			r.due = true
		default:
		}
		snap, changed, err := r.current(ctx)
		if err != nil {
			return err
		}
		if snap == nil || !changed && !r.due {
			r.wait(ctx)
			continue
		}
		again, err := r.try(calls, snap)
		if err != nil {
			return err
		}
		r.due = again > 0
		keyed.Pause(ctx, again, r.snapshots.acc.Done()) // no change ends a backoff
		if !r.due {
			r.wait(ctx) // for the next signal, though something may have changed during the call
		}
	}
}

// current returns the newest snapshot, nil while there is none.
func (r *runner[S]) current(ctx context.Context) (snap *S, changed bool, err error) {
	snap = new(S)
	changed, complete, err := r.snapshots.update(ctx, snap)
	if err != nil {
		return nil, false, r.snapshots.because(err)
	}
	if !complete {
		return nil, false, nil
	}
	if r.changes != nil {
		field := reflect.ValueOf(snap).Elem().FieldByIndex(r.snapshots.deltas)
		r.changes.add(field.Interface().([]*Delta))
		field.Set(reflect.ValueOf(r.changes.deltas()))
	}
	return snap, changed, nil
}

// try calls the function. If it failed, again is when to call it again. An error ends the run.
func (r *runner[S]) try(ctx context.Context, snap *S) (again time.Duration, err error) {
	o, end := r.tries.Call(ctx, time.Time{}, func(ctx context.Context) error { return r.call(r.begin(ctx), snap) })
	if end != nil {
		return 0, end
	}
	r.later = nil
	if o.Err == nil && r.changes != nil {
		r.changes.clear()
	}
	if o.Requeue {
		r.later = time.After(o.Again)
		return 0, nil
	}
	return o.Again, nil
}

// wait returns when there may be something to do.
func (r *runner[S]) wait(ctx context.Context) {
	select {
	case <-r.snapshots.Changed(): // closed at the end
	case <-r.triggered:
		r.due = true
	case <-r.later:
		r.due, r.later = true, nil
	case <-ctx.Done():
	}
}

// trigger has the function called, for another trigger than a change.
func (r *runner[S]) trigger() {
	select {
	case r.triggered <- struct{}{}:
	default: // a call is due already
	}
}

// ErrNotRunning is the error of methods of a [Handle], or of a controller, outside of a run:
// before its watches have started, and after its end.
var ErrNotRunning = errors.New("the run has not started to watch, or has ended")

// A Handle changes the queries of a [Run], a [RunEach] or a controller while it runs, and has its
// function called. It is an option of the run:
//
//	h := kates.NewHandle()
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
	Trigger(keys ...string)
	TriggerAll()
	Ready() error
	Status() Status
}

// NewHandle makes a handle. The zero value is one, too.
func NewHandle() *Handle { return &Handle{} }

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
