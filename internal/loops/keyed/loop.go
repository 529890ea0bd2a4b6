package keyed

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/lease"
)

var errShards = errors.New("its shards have ended")

// Work is what a loop does. For one key its methods are called one after another.
type Work[T Turn] interface {
	// Begin prepares a turn. ours is false where the key is another replica's. It returns false if
	// there is nothing to do: the loop drops the turn, and forgets the key's failures.
	Begin(turn T, ours bool) bool
	// Call does the work. attempt is 1, or more after failures in a row.
	Call(ctx context.Context, turn T, attempt int) error
	// End ends the turn. An error ends the loop.
	End(turn T, o Outcome) error
}

// Outcome is how a call has ended.
type Outcome struct {
	Err     error         // as [Policy.OfKey] makes it; nil if there is none
	Attempt int           // how many have failed in a row
	Again   time.Duration // when to call again: after an error, or with Requeue
	Requeue bool          // it has asked to be called again, or earlier if something changes
	Final   bool          // the error is permanent
	Cut     bool          // the call was cut short, which says nothing about the key; Err is nil
}

// Loop calls the work for each key that has a turn. [Loop.Run] is called once.
type Loop[T Turn] struct {
	Config
	Source Source[T]
	Work   Work[T]
	Grace  *Grace // nil: the contexts of calls end with that of Run

	running atomic.Int64 // calls

	mu      lockorder.Mutex[lockorder.Loop]
	failing map[string]*Tries // by key; whoever has the key's turn uses them
	queued  map[string]*time.Timer
	over    bool // no timers any more
}

// Running is how many calls there are now.
func (l *Loop[T]) Running() int { return int(l.running.Load()) }

// Run calls the work until ctx or the watch ends, the lease is lost, or [Work.End] returns an
// error. It returns when the last call has returned.
func (l *Loop[T]) Run(ctx context.Context) error {
	defer l.unqueueAll()
	defer l.Calls.Begin()()
	defer Listen(ctx, l.Triggers, l.Source.TriggerAll)()
	return l.Standing(ctx, func() error {
		if l.Election == nil {
			return l.lead(ctx, context.WithoutCancel(ctx))
		}
		return lease.Lead(ctx, *l.Election, l.leader())
	})
}

func (l *Loop[T]) leader() Leader {
	return Leader{Watch: l.Source, Work: l.lead, Log: l.Log, Backoff: l.Policy.Backoff}
}

// lead runs the workers. The context named lease ends when this replica does not lead any more.
func (l *Loop[T]) lead(ctx, lease context.Context) error {
	taking, stop := context.WithCancel(ctx)
	defer stop()
	if l.Grace == nil {
		lease = taking
	}
	work, abort := context.WithCancelCause(lease)
	defer abort(nil)
	shards, release, err := l.join(ctx)
	if err != nil {
		return err
	}
	ends := make(chan error)
	for range l.Workers {
		go attempts.Send(ends, func() error { return l.worker(taking, work) })
	}
	why := l.await(taking, work, awaited{ends: ends, shards: shards, stop: stop, abort: abort})
	release()
	return why
}

// awaited is what a loop waits for, and what it does about it.
type awaited struct {
	ends   <-chan error // of workers
	shards <-chan error // of the membership
	stop   func()       // takes no more turns
	abort  context.CancelCauseFunc
}

// await waits for the workers, and cuts their calls short where that is due. It returns why the
// loop has ended: a permanent error rather than another one.
func (l *Loop[T]) await(taking, work context.Context, w awaited) (why error) {
	var stopping, aborted <-chan struct{}
	var patience <-chan time.Time
	if l.Grace != nil {
		stopping, aborted = taking.Done(), l.Grace.Aborted
	}
	because := func(err error) { // a permanent error stays
		if _, final := attempts.Final(why); !final {
			why = err
		}
	}
	cut := func(err error) {
		if work.Err() == nil && l.Running() > 0 {
			because(err)
		}
		w.abort(err)
	}
	for workers := l.Workers; workers > 0; {
		select {
		case err := <-w.ends:
			workers--
			w.stop()
			if _, final := attempts.Final(err); why == nil || final {
				why = err
			}
		case <-stopping:
			stopping, patience = nil, time.After(l.Grace.Period)
		case <-patience:
			patience = nil
			cut(l.Grace.timeout())
		case <-aborted:
			aborted = nil
			cut(l.Grace.second())
		case err := <-w.shards:
			w.shards = nil
			w.stop()
			w.abort(err)
			because(err)
		}
	}
	return why
}

// join makes this replica a shard, if it is to be one, when there is a complete snapshot. ended
// has the error of a membership that has ended early. release ends the membership and waits; it is
// called when no work is under way.
func (l *Loop[T]) join(ctx context.Context) (ended <-chan error, release func(), err error) {
	if l.Shards == nil {
		return nil, func() {}, nil
	}
	if err := l.leader().Prepare(ctx); err != nil {
		return nil, nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	failed, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		tell := func(err error) {
			select {
			case failed <- cmp.Or(err, errShards):
			default: // it was told
			}
		}
		if err := l.Shards.Run(life, l.Source, tell); life.Err() == nil {
			tell(err)
		}
	}()
	return failed, func() {
		cancel()
		<-done
	}, nil
}
