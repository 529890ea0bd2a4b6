package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/lease"
)

// RunEach calls a function with the snapshot of each key (see [WatchEach]): once for each that there is when all kinds are
// complete, and whenever something has changed for a key since, with its current one. It is the loop of a program that has one output per
// something, and does not want one poisoned input to stop all of them.
//
//	err := kates.RunEach(ctx, client, func(ctx context.Context, tenant string, snap *Tenant) error {
//	    return rebuild(ctx, tenant, snap) // an empty snapshot: the tenant is gone
//	}, kates.Query{Name: "Namespaces", Key: kates.ByObjectName}, kates.Query{Name: "Quotas", Key: kates.ByNamespace}, kates.Workers(4))
//
// The options are those of [Run], and [Workers]: several keys have the function called at the same time, one key never has it twice. The function's
// context ends when RunEach does, which is when all calls have returned.
//
// An error means another try for that key alone, with its newest snapshot, and no sooner than its backoff ([WithBackoff]) says, however much
// changes meanwhile. A panic is such an error, a [*PanicError]. [Permanent] marks one that ends RunEach, whatever
// key it is of. Errors are each a [*KeyError], are logged as those of Run are, for each key, and told to [OnError], by several goroutines at a
// time where there are several workers. [AlsoOn] calls for all keys. With [LeaderElection] followers keep all snapshots up to date, and who wins calls
// for every key.
//
// When no object has a key any more, and the function was called with it, it is called once more, with an empty
// snapshot, until it returns no error. Objects of the key that do not decode are left out, which may leave nothing else: a field of [][Invalid] tells.
//
// What it returns is as of [Run]; and an error if the function has ended its goroutine (runtime.Goexit, as FailNow of a test does).
func RunEach[S any](ctx context.Context, c *Client, f func(ctx context.Context, key string, snap *S) error, options ...RunOption) error {
	t := reflect.TypeFor[S]()
	settings, err := newRunSettings(c, f == nil, options)
	if err == nil {
		err = settings.foreign()
	}
	if err != nil {
		return fmt.Errorf("run each %s: %w", t, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := c.core.log.WithValues("run", t.String())
	partitions, err := watchEach[S](ctx, c.With(settings.watch...), settings.backoff, settings.queries)
	if err != nil {
		return lacking(log, err, endOfRun(ctx, t, err))
	}
	defer partitions.Close()
	r := &eachRunner[S]{
		call: f, partitions: partitions, workers: max(1, settings.workers), failing: make(map[string]*tries),
		template: tries{settings: settings, log: log},
	}
	defer settings.listen(ctx, partitions.ActivateAll)()
	switch {
	case settings.sharding != nil:
		err = r.sharded(ctx, c.shard(settings.sharding))
	case settings.election != nil:
		err = lease.Lead(ctx, settings.election.config(c), leader{
			watching: partitions.parts, tries: &r.template, refresh: partitions.refresh, lead: func(ctx, _ context.Context) error { return r.loop(ctx) },
		})
	default:
		err = r.loop(ctx)
	}
	return lacking(log, partitions.Ready(), endOfRun(ctx, t, err))
}

// sharded is loop for the keys that are this replica's, when all kinds are complete.
func (r *eachRunner[S]) sharded(ctx context.Context, s *shard) error {
	follower := leader{watching: r.partitions.parts, tries: &r.template, refresh: r.partitions.refresh}
	if err := follower.Prepare(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		err := s.Run(life, r.partitions.parts)
		cancel(err)
		ended <- err
	}()
	r.shard = s
	err := r.loop(ctx)
	end()
	return cmp.Or(<-ended, err)
}

// eachRunner is one RunEach. Its workers are the goroutines of loop.
type eachRunner[S any] struct {
	call       func(context.Context, string, *S) error
	partitions *Partitions[S]
	workers    int
	template   tries
	shard      *shard // nil: all keys are this replica's

	mu      sync.Mutex
	failing map[string]*tries // of keys; each is used by who holds the key
}

// loop has workers call the function until ctx or the watch ends, or an error is permanent. It returns when the last call has.
func (r *eachRunner[S]) loop(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error)
	for range r.workers {
		go attempts.Send(ends, func() error { return r.work(ctx) })
	}
	why := <-ends
	cancel()
	for range r.workers - 1 {
		err := <-ends
		if _, final := attempts.Final(err); final {
			why = err
		}
	}
	return why
}

// work is one worker.
func (r *eachRunner[S]) work(ctx context.Context) error {
	for {
		turn, err := r.partitions.Next(ctx)
		if err != nil {
			return r.partitions.because(err)
		}
		if err := r.try(ctx, turn); err != nil {
			return err
		}
	}
}

// try calls the function for a key. An error ends the run.
func (r *eachRunner[S]) try(ctx context.Context, turn *Turn[S]) error {
	ctx, leave, ours := r.enter(ctx, turn.Key)
	leave = sync.OnceFunc(leave)
	defer leave()
	if !ours {
		r.keep(turn.Key, &tries{})
		turn.drop()
		return nil
	}
	ctx = turn.Context(ctx)
	t := r.triesOf(turn.Key)
	var failed error
	_, end := t.call(ctx, func() error {
		failed = withoutPanic(func() error { return r.call(ctx, turn.Key, turn.Snapshot) })
		if failed != nil {
			failed = &KeyError{Key: turn.Key, Err: failed}
		}
		return failed
	})
	r.keep(turn.Key, t)
	cause := context.Cause(ctx)
	leave() // before the turn ends: another worker may enter the key then
	if _, final := attempts.Final(end); end != nil && !final && errors.Is(cause, ErrKeyLost) {
		turn.again() // it is another replica's, or will be called for by this one
		return nil
	}
	turn.Done(failed)
	return end
}

// enter begins the work for a key, if it is this replica's.
func (r *eachRunner[S]) enter(ctx context.Context, key string) (inner context.Context, leave func(), ours bool) {
	if r.shard == nil {
		return ctx, func() {}, true
	}
	return r.shard.Enter(ctx, key)
}

// triesOf are the tries of a key that is held.
func (r *eachRunner[S]) triesOf(key string) *tries {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.failing[key]; t != nil {
		return t
	}
	t := r.template
	t.log = t.log.WithValues("key", key)
	return &t
}

// keep remembers the tries of a key as long as it fails.
func (r *eachRunner[S]) keep(key string, t *tries) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.failures > 0 {
		r.failing[key] = t
	} else {
		delete(r.failing, key)
	}
}
