package keyed

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/lease"
)

// Snapshots hands out snapshots of one whole, which has no keys. S is a pointer to one.
type Snapshots[S any] interface {
	Ready() error // nil once there is a complete snapshot
	Changed() <-chan struct{}
	Sync(ctx context.Context) error
	Done() <-chan struct{} // closed at the end of the watch
	Err() error            // why the watch has ended
	// Current returns the newest snapshot. changed: the snapshot before was another one. complete
	// is false while there is none.
	Current(ctx context.Context) (snap S, changed, complete bool, err error)
	// Handled is called when the function has returned no error for the newest snapshot.
	Handled()
}

// Whole calls a function with the snapshots of one whole: with the first one, and then, whenever
// something has changed, with the current one. [Whole.Run] is called once. The goroutine of Run
// alone uses the fields, but for running, and triggered, to which triggers send.
type Whole[S any] struct {
	Config
	Snapshots Snapshots[S]
	Call      func(context.Context, S) error
	Grace     *Grace // nil: the contexts of calls end with that of Run

	tries     Tries
	running   atomic.Bool      // the function is called. Any goroutine may read it
	triggered chan struct{}    // by another trigger
	due       bool             // the function is to be called, though nothing may have changed
	later     <-chan time.Time // the function has asked to be called then; nil: it has not
}

// NewWhole returns a loop, whose triggers may be called before it runs.
func NewWhole[S any](c Config, g *Grace, from Snapshots[S], call func(context.Context, S) error) *Whole[S] {
	return &Whole[S]{
		Config: c, Snapshots: from, Call: call, Grace: g, due: true, triggered: make(chan struct{}, 1),
		tries: Tries{Policy: &c.Policy, Log: c.Log, Calls: c.Calls},
	}
}

// Run calls the function until ctx or the watch ends, the lease is lost, or an error is permanent.
func (w *Whole[S]) Run(ctx context.Context) error {
	defer w.Calls.Begin()()
	defer Listen(ctx, w.Triggers, w.Trigger)()
	return w.Standing(ctx, func() error {
		if w.Election == nil {
			return w.lead(ctx, context.WithoutCancel(ctx))
		}
		return lease.Lead(ctx, *w.Election, Leader{
			Watch: followed[S]{w.Snapshots}, Triggered: w.triggered, Log: w.Log, Backoff: w.Policy.Backoff, Work: w.lead,
		})
	})
}

// followed are snapshots that a follower keeps up to date.
type followed[S any] struct{ Snapshots[S] }

// Refresh implements [Watch].
func (f followed[S]) Refresh(ctx context.Context) error {
	_, _, _, err := f.Current(ctx)
	return err
}

// lead is loop, with the grace that calls have at the end, as long as there is a lease.
func (w *Whole[S]) lead(ctx, lease context.Context) (err error) {
	calls, stop := w.Grace.Extend(ctx, lease, w.running.Load)
	defer func() { // also if the function ends its goroutine
		cut := stop()
		if _, final := attempts.Final(err); !final {
			err = cmp.Or(cut, err)
		}
	}()
	return w.loop(ctx, calls)
}

// loop calls the function until ctx or the watch ends, or an error is permanent. Calls have a
// context of their own.
func (w *Whole[S]) loop(ctx, calls context.Context) error {
	for {
		select {
		case <-w.triggered:
			w.due = true
		default:
		}
		snap, changed, complete, err := w.Snapshots.Current(ctx)
		if err != nil {
			return err
		}
		if !complete || !changed && !w.due {
			w.wait(ctx)
			continue
		}
		again, err := w.try(calls, snap)
		if err != nil {
			return err
		}
		w.due = again > 0
		Pause(ctx, again, w.Snapshots.Done()) // no change ends a backoff
		if !w.due {
			w.wait(ctx) // for the next signal, though something may have changed during the call
		}
	}
}

// try calls the function. If it failed, again is when to call it again. An error ends the run.
func (w *Whole[S]) try(ctx context.Context, snap S) (again time.Duration, err error) {
	w.running.Store(true)
	defer w.running.Store(false)
	o, end := w.tries.Call(ctx, time.Time{}, func(ctx context.Context) error { return w.Call(ctx, snap) })
	if end != nil {
		return 0, end
	}
	w.later = nil
	if o.Err == nil {
		w.Snapshots.Handled()
	}
	if o.Requeue {
		w.later = time.After(o.Again)
		return 0, nil
	}
	return o.Again, nil
}

// wait returns when there may be something to do.
func (w *Whole[S]) wait(ctx context.Context) {
	select {
	case <-w.Snapshots.Changed(): // closed at the end
	case <-w.triggered:
		w.due = true
	case <-w.later:
		w.due, w.later = true, nil
	case <-ctx.Done():
	}
}

// Trigger has the function called, though nothing may have changed.
func (w *Whole[S]) Trigger() {
	select {
	case w.triggered <- struct{}{}:
	default: // a call is due already
	}
}
