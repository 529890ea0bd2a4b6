package controller

import (
	"context"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/seam"
	"github.com/kates-go/kates/kates"
)

// held is what a run keeps of a key: as long as there is a root, or the reconciler is owed a turn for one that has departed. It
// belongs to who has the key's turn, but for timer and failure, which the run's lock guards.
type held struct {
	root    accumulator.Object // as the reconciler knows it
	tries   seam.Tries         // while it fails
	timer   *time.Timer        // of a requeue
	failure *Failure           // of the last reconcile
}

// worker reconciles what it is handed, until ctx or the watch ends.
func (r *run) worker(ctx context.Context) error {
	for {
		turn, err := r.watch.Next(ctx)
		if err != nil {
			return err
		}
		if ctx.Err() != nil { // no new work
			turn.Done(nil)
			return ctx.Err()
		}
		r.take(turn)
	}
}

// take sees to a turn.
func (r *run) take(turn *seam.Turn) {
	ctx, ours := r.work, true
	if r.plan.Shards != nil {
		var leave func()
		if ctx, leave, ours = r.plan.Shards.Enter(r.work, turn.Key); ours {
			leave = leaving(turn, leave)
			defer leave()
		}
	}
	ctx = turn.Context(ctx)
	k := r.hold(turn.Key)
	departed := k.root != nil && (!there(turn) || turn.UID != k.root.GetUID())
	if departed && (!ours || r.plan.Special == nil) { // nobody is told
		k.root, k.tries, departed = nil, nil, false
	}
	if !departed && turn.Root != nil {
		k.root = turn.Root
	}
	switch {
	case departed:
		r.reconcile(ctx, turn, k, true)
	case ours && there(turn):
		r.reconcile(ctx, turn, k, false)
	default: // another replica's, or something has the key, but there is no root
		k.tries = nil
		r.settle(turn.Key, k, nil)
		turn.Drop()
	}
}

// there reports whether there is a root of the key, whether it can be read or not.
func there(turn *seam.Turn) bool { return turn.Root != nil || turn.Unread != nil }

// leaving has a turn's end leave its key first: after it another worker may enter the key, which would not be this replica's then. It returns leave, to
// be called where the turn does not end.
func leaving(turn *seam.Turn, leave func()) func() {
	leave = sync.OnceFunc(leave)
	done, again, keep, drop := turn.Done, turn.Again, turn.Keep, turn.Drop
	turn.Done = func(err error) { leave(); done(err) }
	turn.Again = func(after time.Duration) { leave(); again(after) }
	turn.Keep = func() { leave(); keep() }
	turn.Drop = func() { leave(); drop() }
	return leave
}

// reconcile calls the user's function, and ends the turn.
func (r *run) reconcile(ctx context.Context, turn *seam.Turn, k *held, departed bool) {
	if k.tries == nil {
		k.tries = r.plan.Tries(turn.Key)
	}
	var result Result
	again, end := k.tries.Call(ctx, func() (err error) {
		result, err = r.try(ctx, turn, k, departed)
		if err != nil && result.again {
			err = &attempts.Later{Err: err, After: result.after}
		}
		return err
	})
	_, final := attempts.Final(end)
	if end != nil && !final { // it was cut short, which says nothing about the key
		r.settle(turn.Key, k, nil)
		turn.Again(0) // with what it has taken along: for whoever has the key then
		return
	}
	r.counts.reconciles.Add(1)
	if attempt, err := k.tries.Failed(); err != nil {
		r.counts.errors.Add(1)
		r.failed(turn, k, departed, final, again, &Failure{Key: turn.Key, Attempt: attempt, Err: err})
		return
	}
	k.tries = nil
	if result.again {
		r.settle(turn.Key, k, nil)
		r.requeue(turn.Key, k, result.after)
		turn.Keep()
		return
	}
	r.done(turn, k, departed, nil)
}

// try is one call of the user's function.
func (r *run) try(ctx context.Context, turn *seam.Turn, k *held, departed bool) (result Result, err error) {
	r.counts.running.Add(1)
	defer r.counts.running.Add(-1)
	if turn.Unread != nil && !departed {
		return Done, kates.Permanent(turn.Unread)
	}
	root := k.root
	failures, _ := k.tries.Failed()
	info := Info{Key: turn.Key, Attempt: failures + 1}
	if departed {
		if info.Departed, err = r.departure(ctx, root, there(turn)); err != nil {
			return Done, err
		}
		turn.OwnedBy(root.GetUID())
	}
	p := turn.Struct
	p.FieldByIndex(r.plan.Root).Set(reflect.ValueOf(root))
	if r.plan.Special != nil {
		p.FieldByIndex(r.plan.Special).Set(reflect.ValueOf(info))
	}
	return r.call(ctx, p)
}

// failed ends the turn of a reconcile that has failed. What is permanent waits for a change, which cannot come where the root has departed.
func (r *run) failed(turn *seam.Turn, k *held, departed, final bool, again time.Duration, f *Failure) {
	if final {
		r.done(turn, k, departed, f)
		return
	}
	r.settle(turn.Key, k, f)
	turn.Again(again) // not its Done, which counts failures itself, and not those that are permanent
}

// done ends the turn of a reconcile that is over. The key of a root that has departed is forgotten; if another root has it by now, that is next.
func (r *run) done(turn *seam.Turn, k *held, departed bool, f *Failure) {
	if departed {
		k.root, k.tries, f = nil, nil, nil
	}
	r.settle(turn.Key, k, f)
	turn.Done(nil)
	if departed && there(turn) {
		r.watch.Activate(turn.Key)
	}
}

// departure finds out how a root has come to be not there any more.
func (r *run) departure(ctx context.Context, root accumulator.Object, replaced bool) (Departure, error) {
	if replaced || !r.watch.Selective() {
		return Deleted, nil
	}
	var there *kates.Unstructured
	switch err := r.client.Get(ctx, root, &there); {
	case kates.IsNotFound(err):
		return Deleted, nil
	case apierrors.IsForbidden(err):
		return Unknown, nil
	case err != nil:
		return "", err
	case there.GetUID() != root.GetUID():
		return Deleted, nil
	}
	return Left, nil
}

// hold returns what is kept of a key, for who has its turn. A requeue is over with it.
func (r *run) hold(key string) *held {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[key]
	if k == nil {
		k = &held{}
		r.keys[key] = k
	}
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
	return k
}

// settle notes how the last reconcile of a key ended, before its turn does. A key of which nothing is known any more is forgotten.
func (r *run) settle(key string, k *held, f *Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.failure = f; k.root == nil && f == nil {
		delete(r.keys, key)
	}
}

// requeue sets the timer of a key.
func (r *run) requeue(key string, k *held, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		k.timer = time.AfterFunc(after, func() { r.watch.Activate(key) })
	}
}

func (r *run) stopTimers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for _, k := range r.keys {
		if k.timer != nil {
			k.timer.Stop()
		}
	}
}
