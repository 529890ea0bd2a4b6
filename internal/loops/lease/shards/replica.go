package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/loops/fence"
	"github.com/kates-go/kates/internal/loops/lease"
)

// Replica is a member of a group. It has two goroutines, which end with [Replica.Leave]. All
// methods are safe for concurrent use.
type Replica struct {
	config   Config
	leases   dynamic.ResourceInterface
	cancel   context.CancelFunc
	giveBack func() // the identity
	tasks    sync.WaitGroup
	again    chan struct{} // wakes the loop
	behind   chan struct{} // wakes the catch-up

	mu       lockorder.Mutex[lockorder.Replica]
	core     *core
	reported standing           // that Moved was last called for
	brought  *shardrange.Ranges // that the inputs have; nil: not known
	loaded   time.Time          // when the objects were counted last
	lag      error              // of the last catch-up; it was logged when it began
	trouble  error              // of the last request; it was logged when it began
}

// Join makes a replica that has no key yet. It is a member of its group until [Replica.Leave]. It
// uses the values of the context and ignores its end: work that ends with the context needs its
// keys to the end.
func Join(ctx context.Context, config Config) (*Replica, error) {
	if err := config.Complete(); err != nil {
		return nil, err
	}
	giveBack, err := config.TakeIdentity("shards/" + config.Group)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Replica{
		config: config, leases: config.Client.Resource(lease.Resource).Namespace(config.Namespace), cancel: cancel,
		giveBack: sync.OnceFunc(giveBack),
		again:    make(chan struct{}, 1), behind: make(chan struct{}, 1), core: newCore(config),
	}
	config.Report.Show(r.Status)
	r.tasks.Go(func() { r.run(life) })
	r.tasks.Go(func() { r.catchUp(life) })
	return r, nil
}

// Status is what the replica knows of its membership now.
func (r *Replica) Status() lease.Status {
	s := r.status()
	if r.config.Streams != nil {
		s.Streams = r.config.Streams()
	}
	if r.config.Keys != nil {
		all := r.config.Keys()
		r.mu.Lock()
		defer r.mu.Unlock()
		for now := time.Now(); len(all) > 0; all = all[1:] {
			if r.core.mine(r.key(all[0]), now) {
				s.Keys++
			}
		}
	}
	return s
}

func (r *Replica) status() lease.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := &r.core.own
	s := lease.Status{
		Lease: r.config.Namespace + "/" + r.config.Group, Identity: r.config.Identity,
		Holds: own.joined() && own.age(time.Now()) < r.config.LeaseDuration,
		Held:  !own.since.IsZero(), Reached: !own.since.IsZero(), Since: own.since,
		Members: len(r.core.group.all), Err: r.core.hindrance(cmp.Or(r.trouble, r.lag)),
	}
	if p, ok := r.core.keys.claim.(*plan); ok {
		ranges := p.cuts.Ranges(r.core.self)
		s.Ranges, s.Part = len(ranges), ranges.Part()
	}
	return s
}

// ByRanges reports whether the replica claims ranges of hashes. Otherwise it says why not.
func (r *Replica) ByRanges() (ok bool, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok = r.core.keys.claim.(*plan); ok {
		return true, ""
	}
	for name, o := range r.core.group.peers {
		if name != r.core.self && o.by != r.config.By {
			return false, fmt.Sprintf("member %s divides keys otherwise: by %s", name, cmp.Or(o.by, "their names"))
		}
	}
	return false, "it has no part yet"
}

// Take begins work for a key, if the replica owns it, and no work for it is running. Give ends
// the work.
//
// since is what [Replica.Gains] was before the caller looked at what there is to do for the key.
// If the replica may have got keys since, another one may have worked for this one after that
// look: the answer is no.
func (r *Replica) Take(key string, since uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.core.keys.gains == since && r.core.take(r.key(key), time.Now())
}

// Gains is how often the replica may have got keys.
func (r *Replica) Gains() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.core.keys.gains
}

// key is the key of a name. Called with mu held.
func (r *Replica) key(name string) Key {
	if r.config.Hash == nil {
		return Key{Name: name}
	}
	return Key{Name: name, Hash: r.config.Hash(name)}
}

// Mine reports whether the replica owns the key.
func (r *Replica) Mine(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.core.mine(r.key(key), time.Now())
}

// Give ends the work for a key that Take has returned true for.
func (r *Replica) Give(key string) {
	r.mu.Lock()
	r.core.give(key)
	r.mu.Unlock()
	signal(r.again) // the loop may wait for this
}

// Context returns a context for the work for a taken key. It ends when the key is lost, with a
// cause of [ErrLost]. Under it, and under contexts derived from it, no write is sent when the
// replica's Lease is over, even if the replica does not know that yet.
func (r *Replica) Context(ctx context.Context, key string) (context.Context, context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.core.running[key]
	if t == nil {
		t = &tenure{revoked: fmt.Errorf("%w: nothing is done for it", ErrLost)}
	}
	ctx, cancel := context.WithCancelCause(fence.With(ctx, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.core.held(t, time.Now())
	}))
	if t.cancel = cancel; t.revoked != nil {
		cancel(t.revoked)
	}
	return ctx, func() { cancel(nil) }
}

// Leave ends the membership, waits for the replica's goroutines, and deletes its Lease, so that
// others get its keys at once. The work for keys must have ended before. It takes no longer than
// the renew deadline.
func (r *Replica) Leave() {
	r.cancel()
	r.tasks.Wait()
	defer r.giveBack()
	r.mu.Lock()
	uid, joined := r.core.own.uid, r.core.own.joined()
	r.core.lose(errors.New("it has left"))
	r.mu.Unlock()
	if !joined {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.config.RenewDeadline)
	defer cancel()
	name := leaseName(r.config.Group, member(r.config.Identity))
	err := r.leases.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: (*types.UID)(&uid)}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		r.config.Logger.Info("cannot delete the lease, others will when it has expired",
			"group", r.config.Group, "lease", name, "err", err)
	}
}

// run makes the requests, until ctx ends. It has a goroutine of its own. When the watch has ended,
// a member renews its Lease nevertheless: work that has begun needs its keys to the end.
func (r *Replica) run(ctx context.Context) {
	changed := r.config.Watch.Changed()
	for ctx.Err() == nil {
		var leases []*coordinationv1.Lease
		known := false
		if changed != nil {
			var err error
			if leases, known, err = r.config.Watch.Leases(ctx); err != nil {
				changed = nil // the watch has ended
			}
		}
		r.count()
		now := time.Now()
		r.mu.Lock()
		w, wake := write{}, now.Add(r.config.RetryPeriod)
		if known {
			r.core.observe(r.peers(leases), now)
		}
		if known || changed == nil && r.core.own.joined() {
			w, wake = r.core.todo(now)
		}
		r.mu.Unlock()
		r.report()
		if w.verb != none {
			r.ask(ctx, w)
			r.report()
			continue
		}
		select {
		case <-time.After(time.Until(wake)):
		case <-changed:
		case <-r.again:
		case <-ctx.Done():
		}
	}
}

func (r *Replica) peers(leases []*coordinationv1.Lease) (all []peer) {
	for _, lease := range leases {
		if p, ok := peerOf(r.config.Group, lease); ok {
			all = append(all, p)
		}
	}
	return all
}

// ask makes a request, and takes in its answer.
func (r *Replica) ask(ctx context.Context, w write) {
	sent := time.Now()
	r.mu.Lock()
	r.core.sends(w, sent)
	load := r.core.load
	r.mu.Unlock()
	got, err := r.send(ctx, w, load, sent)
	if ctx.Err() != nil {
		return
	}
	r.note(w, err)
	if err == nil && w.verb == create {
		r.config.Report.Reached()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.core.answered(w, got, sent, time.Now(), err)
}

func (r *Replica) send(ctx context.Context, w write, load []shardrange.Load, now time.Time) (peer, error) {
	// half of the deadline: there is time for another attempt
	ctx, cancel := context.WithTimeout(ctx, r.config.RenewDeadline/2)
	defer cancel()
	name := leaseName(r.config.Group, w.member)
	var u *unstructured.Unstructured
	var err error
	switch w.verb {
	case create, update:
		if u, err = r.config.object(w, load, now); err != nil {
			break
		}
		if w.verb == create {
			u, err = r.leases.Create(ctx, u, metav1.CreateOptions{FieldManager: r.config.FieldManager})
		} else {
			u, err = r.leases.Update(ctx, u, metav1.UpdateOptions{FieldManager: r.config.FieldManager})
		}
	case read:
		u, err = r.leases.Get(ctx, name, metav1.GetOptions{})
	case remove:
		return peer{}, r.leases.Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: (*types.UID)(&w.uid), ResourceVersion: &w.version},
		})
	}
	if err != nil {
		return peer{}, err
	}
	var lease coordinationv1.Lease
	if err := asjson.Decode(u.Object, &lease); err != nil {
		return peer{}, err
	}
	got, ok := peerOf(r.config.Group, &lease)
	if !ok {
		return peer{}, fmt.Errorf("the lease %s is none of the group", name)
	}
	return got, nil
}

// note logs once that requests fail, and once that they succeed again. It also logs which member
// was removed.
func (r *Replica) note(w write, err error) {
	log := r.config.Logger.WithValues("group", r.config.Group, "identity", r.config.Identity)
	r.mu.Lock()
	before, now := r.trouble, err
	switch {
	case !w.verb.others(err):
	case apierrors.IsNotFound(err):
		now = before // the next request, a creation, tells
	default:
		now = nil
	}
	r.trouble = now
	r.mu.Unlock()
	switch {
	case now != nil && before == nil:
		log.Error(err, "cannot keep a place among the shards, will keep trying")
	case now == nil && before != nil:
		log.Info("can keep a place among the shards again")
	}
	if err == nil && w.verb == remove {
		log.Info("a shard's lease has expired and was deleted", "member", w.member)
	}
}

// report calls Moved, if something has changed.
func (r *Replica) report() {
	r.mu.Lock()
	now, lost := r.core.keys.standing(), r.core.lost
	r.core.lost = nil
	moved := now != r.reported
	r.reported = now
	need, known := r.core.need()
	other := known && r.config.By != "" && (r.brought == nil || !slices.Equal(need, *r.brought))
	r.mu.Unlock()
	if lost != nil {
		r.config.Logger.Info("no shard any more, will join again", "group", r.config.Group, "identity", r.config.Identity, "err", lost)
	}
	if moved {
		r.config.Moved()
	}
	if other || now.behind() {
		signal(r.behind)
	}
}

// count has the objects of the replica counted, now and then.
func (r *Replica) count() {
	now := time.Now()
	if r.config.Loads == nil || now.Sub(r.loaded) < r.config.RetryPeriod && !r.loaded.IsZero() {
		return
	}
	r.loaded = now
	load := shardrange.Digest(r.config.Loads(), loadsMost)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.core.load = load
}

// catchUp waits for the watches to bring what the replica needs, and to catch up, until ctx ends.
// It has a goroutine of its own. What a replica needs has the keys of each grant that there is, so
// the inputs have all that it may own. They lose no more than what it owns by no claim that it may
// have written.
func (r *Replica) catchUp(ctx context.Context) {
	for {
		select {
		case <-r.behind:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		now := r.core.keys.standing()
		need, known := r.core.need()
		r.mu.Unlock()
		if !known {
			continue
		}
		err := r.bring(ctx, need, now.behind())
		r.lags(ctx, err)
		if err != nil {
			select {
			case <-time.After(r.config.RetryPeriod):
			case <-ctx.Done():
			}
			signal(r.behind)
			continue
		}
		r.mu.Lock()
		r.brought = &need
		r.core.keys.caughtUp(now.last)
		r.mu.Unlock()
		r.report()
	}
}

// bring has the inputs of the work bring what the replica needs, and catch up where it may get
// keys: that takes a list.
func (r *Replica) bring(ctx context.Context, need shardrange.Ranges, behind bool) error {
	if r.config.Bring != nil {
		if err := r.config.Bring(ctx, need); err != nil {
			return err
		}
	}
	if !behind {
		return nil
	}
	return r.config.CatchUp(ctx)
}

// lags notes whether the watches could not catch up. It logs once that they cannot, and once that
// they can again.
func (r *Replica) lags(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	before := r.lag
	r.lag = err
	r.mu.Unlock()
	log := r.config.Logger.WithValues("group", r.config.Group, "identity", r.config.Identity)
	switch {
	case err != nil && before == nil:
		log.Error(err, "cannot catch up with the keys that it may get, will keep trying")
	case err == nil && before != nil:
		log.Info("can catch up with its keys again")
	}
}

// signal leaves one signal in a channel.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
