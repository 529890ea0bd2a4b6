package kates

import (
	"context"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/keyed"
)

// RunEach calls a function with the snapshot of each key (see [WatchEach]). It calls it once for
// each existing key when all kinds are complete, and again whenever something has changed for a
// key, with the key's current snapshot. It is the loop of a program that has one output per
// something, and that one poisoned input must not stop.
//
//	err := kates.RunEach(ctx, client, func(ctx context.Context, tenant string, snap *Tenant) error {
//	    return rebuild(ctx, tenant, snap) // an empty snapshot: the tenant is gone
//	}, kates.Query{Name: "Namespaces", Key: kates.ByObjectName}, kates.Query{Name: "Quotas", Key: kates.ByNamespace}, kates.Workers(4))
//
// The options are those of [Run], [Workers] and [Sharding]. With several workers the function
// runs for several keys at the same time, and never twice at a time for one key. Its context ends
// when that of RunEach does. RunEach returns when all calls have returned.
//
// An error means another try for that key alone, with its newest snapshot, after its backoff
// ([WithBackoff]), however much changes meanwhile. A panic is such an error, a [*PanicError].
// [Permanent] marks an error that ends RunEach, whatever its key. [Again] and [Backoff] ask for
// another call for the key. Each error is a [*KeyError].
// Errors are logged as those of Run are, for each key, and given to [OnError], which several
// workers may call at a time. A value of [AlsoOn] calls for all keys. With [LeaderElection]
// followers keep all snapshots up to date, and a new leader calls for every key.
//
// When no object has a key any more, and the function was called with that key, it is called once
// more with an empty snapshot, until it returns no error. Objects of the key that do not decode
// are left out, which may leave no object at all: a field of [][Invalid] has them.
//
// It returns what [Run] returns; and an error if the function has ended its goroutine
// (runtime.Goexit, as FailNow of a test does).
func RunEach[S any](ctx context.Context, c *Client, f func(ctx context.Context, key string, snap *S) error, options ...RunOption) error {
	t := reflect.TypeFor[S]()
	settings, err := newRunSettings(c, f == nil, options)
	if err != nil {
		return fmt.Errorf("run each %s: %w", t, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config := settings.config(c, c.core.log.WithValues("run", t.String()))
	partitions, err := watchEach[S](ctx, c.With(settings.watch...), settings.policy.Backoff, settings.queries)
	if err != nil {
		return keyed.Lacking(config.Log, err, endOfRun(ctx, t, err))
	}
	defer partitions.Close()
	all := each[S]{partitionWatch{partitions.partitioned}, partitions, f}
	loop := &keyed.Loop[eachTurn[S]]{Config: config, Source: all, Work: all}
	err = loop.Run(ctx)
	return keyed.Lacking(config.Log, partitions.Ready(), endOfRun(ctx, t, err))
}

// each is a RunEach: the turns of a loop, and the work.
type each[S any] struct {
	partitionWatch
	partitions *Partitions[S]
	f          func(context.Context, string, *S) error
}

var (
	_ keyed.Work[eachTurn[struct{}]]   = each[struct{}]{}
	_ keyed.Source[eachTurn[struct{}]] = each[struct{}]{}
)

// Begin implements [keyed.Work].
func (e each[S]) Begin(_ eachTurn[S], ours bool) bool { return ours }

// Call implements [keyed.Work].
func (e each[S]) Call(ctx context.Context, turn eachTurn[S], _ int) error {
	return e.f(ctx, turn.Name(), turn.snapshot)
}

// End implements [keyed.Work].
func (e each[S]) End(turn eachTurn[S], o keyed.Outcome) error {
	if o.Cut { // the key is another replica's, or this one calls for it again; or all is over
		turn.Yield()
		return nil
	}
	if o.Requeue {
		turn.Keep() // also a key that is gone
		return nil
	}
	turn.Done(o.Err)
	if o.Final {
		return o.Err
	}
	return nil
}

// Next implements [keyed.Source].
func (e each[S]) Next(ctx context.Context) (eachTurn[S], error) {
	turn, err := e.partitions.Next(ctx)
	if err != nil {
		return eachTurn[S]{}, e.because(err)
	}
	return eachTurn[S]{turn.turn, turn.Snapshot}, nil
}

// partitionWatch is partitions as the [keyed.Watch] of a loop, and its [keyed.Keys]: what package
// keyed wants beyond what is public.
type partitionWatch struct{ *partitioned }

func (p partitionWatch) Changed() <-chan struct{}       { return p.all.Changed() }
func (p partitionWatch) Sync(ctx context.Context) error { return p.all.Sync(ctx) }
func (p partitionWatch) Done() <-chan struct{}          { return p.all.Done() }
func (p partitionWatch) Err() error                     { return p.all.Err() }

func (p partitionWatch) Refresh(ctx context.Context) error {
	if err := p.all.Refresh(ctx); err != nil {
		return p.because(err)
	}
	return nil
}

// eachTurn is a turn of partitions in a loop.
type eachTurn[S any] struct {
	*keyTurn
	snapshot *S
}

// Yield implements [keyed.Turn].
func (t eachTurn[S]) Yield() {
	if t.end(true) {
		t.turn.Keep() // also a key that is gone
		t.of.Activate(t.Name())
	}
}

// KeyError is an error of one key of a [RunEach] or a controller. [OnError] gets it.
type KeyError struct {
	Key string
	Err error
}

// Error names the key.
func (e *KeyError) Error() string { return fmt.Sprintf("key %q: %s", e.Key, e.Err.Error()) }

// Unwrap returns the error.
func (e *KeyError) Unwrap() error { return e.Err }

func newKeyError(key string, err error) error { return &KeyError{Key: key, Err: err} }
