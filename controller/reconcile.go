package controller

import (
	"context"
	"errors"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
)

// held is what a run keeps of a key, as long as there is a root, or the reconciler has to learn
// that one has departed. Whoever has the key's turn uses it; the run's lock guards failure.
type held struct {
	root     kates.Object  // as the reconciler knows it
	value    reflect.Value // of the root's field
	departed bool          // this turn is about its departure
	result   Result        // of this turn
	failure  *Failure      // of the last reconcile
}

var _ keyed.Work[*keyed.Root] = (*run)(nil)

// Begin implements [keyed.Work]. It finds out what the turn is about: the departure of the root
// that the reconciler knows, the root that exists, or nothing.
func (r *run) Begin(turn *keyed.Root, ours bool) bool {
	k := r.hold(turn.Name())
	k.result = Done
	k.departed = k.root != nil && (!turn.Exists() || turn.UID != k.root.GetUID())
	if k.departed && (!ours || r.plan.Special == nil) { // no reconciler learns of it here
		k.root, k.departed = nil, false
		r.loop.Forget(turn.Name())
	}
	if !k.departed && turn.Object != nil {
		k.root, k.value = turn.Object, turn.Value
	}
	if k.departed || ours && turn.Exists() {
		return true
	}
	r.conclude(turn.Name(), k, nil) // another replica's key, or one without a root
	return false
}

// Call implements [keyed.Work]. It calls the user's function once.
func (r *run) Call(ctx context.Context, turn *keyed.Root, attempt int) (err error) {
	k := r.held(turn.Name())
	k.result, err = r.reconcile(ctx, turn, k, attempt)
	switch {
	case !k.result.again:
		return err
	case err == nil:
		return kates.Again(k.result.after)
	}
	return &attempts.Later{Err: err, After: k.result.after}
}

func (r *run) reconcile(ctx context.Context, turn *keyed.Root, k *held, attempt int) (result Result, err error) {
	if turn.Unread != nil && !k.departed {
		return Done, kates.Permanent(turn.Unread)
	}
	root, info := k.root, Info{Key: turn.Name(), Attempt: attempt, Root: k.root}
	if k.departed {
		if info.Departure, err = r.departure(ctx, root, turn.Exists()); err != nil {
			return Done, err
		}
		turn.OwnedBy(root.GetUID())
	}
	p := turn.Struct
	p.FieldByIndex(r.plan.Root).Set(k.value)
	if r.plan.Special != nil {
		p.FieldByIndex(r.plan.Special).Set(reflect.ValueOf(info))
	}
	return r.call(ctx, p)
}

// End implements [keyed.Work]. No error of a reconcile ends the loop.
func (r *run) End(turn *keyed.Root, o keyed.Outcome) error {
	k := r.held(turn.Name())
	if o.Cut {
		r.conclude(turn.Name(), k, nil)
		turn.Yield() // with its deltas: for whichever replica has the key then
		return nil
	}
	r.counts.reconciles.Add(1)
	switch {
	case o.Err != nil:
		r.counts.errors.Add(1)
		r.failed(turn, k, o)
	case o.Requeue:
		r.conclude(turn.Name(), k, nil)
		turn.Keep()
	default:
		r.done(turn, k, nil)
	}
	return nil
}

// failed ends the turn of a reconcile that has failed. After a permanent error the key waits for a
// change, which cannot come where the root has departed.
func (r *run) failed(turn *keyed.Root, k *held, o keyed.Outcome) {
	f := &Failure{Key: turn.Name(), Attempt: o.Attempt, Err: errors.Unwrap(o.Err)}
	if o.Final {
		r.done(turn, k, f)
		return
	}
	r.conclude(turn.Name(), k, f)
	turn.Again(o.Again) // not Done, whose backoff does not count permanent errors
}

// done ends the turn of a reconcile that is over. It forgets the key of a root that has departed;
// if another root has that key by now, it is reconciled next.
func (r *run) done(turn *keyed.Root, k *held, f *Failure) {
	departed := k.departed
	if departed {
		k.root, f = nil, nil
		r.loop.Forget(turn.Name())
	}
	r.conclude(turn.Name(), k, f)
	turn.Done(nil)
	if departed && turn.Exists() {
		r.watch.Trigger(turn.Name())
	}
}

// departure finds out why a root is not there any more.
func (r *run) departure(ctx context.Context, root kates.Object, replaced bool) (Departure, error) {
	if replaced || !r.watch.Selective() {
		return Deleted, nil
	}
	var found *kates.Unstructured
	switch err := r.client.Get(ctx, root, &found); {
	case kates.IsNotFound(err):
		return Deleted, nil
	case apierrors.IsForbidden(err):
		return Unknown, nil
	case err != nil:
		return "", err
	case found.GetUID() != root.GetUID():
		return Deleted, nil
	}
	return Left, nil
}

// hold returns what is kept of a key whose turn begins.
func (r *run) hold(key string) *held {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[key]
	if k == nil {
		k = &held{}
		r.keys[key] = k
	}
	return k
}

// held returns what is kept of a key that has a turn.
func (r *run) held(key string) *held {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[key]
}

// conclude notes how the last reconcile of a key ended, before its turn ends. It forgets a key
// that has neither a root nor a failure.
func (r *run) conclude(key string, k *held, f *Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.failure = f; k.root == nil && f == nil {
		delete(r.keys, key)
	}
}
