package kates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kates-go/kates/internal/lease/shards"
	"github.com/kates-go/kates/internal/seam"
)

// ErrKeyLost is the cause of the end of the context of what is done for a key that is another replica's now (see [Sharding]), and
// the error of writes that are not sent therefore.
var ErrKeyLost = shards.ErrLost

// Sharding is an option of [RunEach] and of controllers: the keys are divided among the replicas that have the same Name, each is one replica's, and
// only that one calls the function for it. All watch everything, and are ready to take over.
//
//	kates.RunEach(ctx, client, rebuild, queries, kates.Sharding{Namespace: "ingress", Name: "tenants"})
//
// Each replica has a Lease of its own in Namespace, labelled kates.io/shards=Name, and watches those of the others. When a replica comes or goes, the
// keys that move are those that it gets or had; all others stay where they are (rendezvous hashing). A replica that gains a key begins with it when
// the former owner has said that it has ended what it did for it, and its own watches have caught up with the server; its function is called then,
// though nothing may have changed. One that ends gives its keys up at once; one that dies or stops does when its Lease has expired, by what the
// others observe of its renewals: their clocks need not agree, but run at one speed.
//
// Who is to lose a key takes no more turns of it. A call that is under way may go on for LeaseDuration; then its context is cancelled, and
// after once more LeaseDuration the others wait for it no longer. If the replica's own Lease is lost, because the server does not answer
// or the process was stopped, the contexts of all its calls are cancelled, with a [context.Cause] of [ErrKeyLost], and it joins again by
// itself. An error of a call whose context was cancelled so is no failure: it is not logged, and whoever has the key then is called without a backoff.
//
// What its function is called for when a key is gone (an empty snapshot, a root that has departed) is told to the key's owner at that
// time; if the key was on its way from one replica to another, or the owner had not been called for it yet, to nobody. What must not be missed needs a finalizer.
//
// A key that becomes the replica's is called for, and one that was about to be at that moment maybe twice.
//
// Deltas are about the replica's own calls: they say what has changed since its last one for the key that returned no error, also what did while the key
// was another's. A key that was gone meanwhile begins anew.
//
// Writes are fenced, as [LeaderElection] describes it.
//
// It needs the rights to get, list, watch, create, update and delete leases (coordination.k8s.io) in Namespace; renewals are not subject to
// the client's rate limit. client-go's fake has neither versions nor preconditions: replicas on it divide the keys, for tests, and none of them is stopped.
type Sharding struct {
	// Namespace of the Leases. Default: the client's.
	Namespace string
	// Name of the group of replicas: a DNS label.
	Name string
	// Identity of this replica, which nobody else may have at the time. Default: the host's name and a random UUID. Keys go by
	// it: one who comes back under the same Identity has the same keys.
	Identity string
	// LeaseDuration is how long others wait for a renewal before they take the keys: whole seconds. Default 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a replica tries to renew before it gives its keys up: less than LeaseDuration. Default 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is between two renewals: less than RenewDeadline divided by 1.2. Default 2 s.
	RetryPeriod time.Duration
}

func (s Sharding) applyToRun(r *runSettings) {
	if r.sharding != nil {
		r.wrong = errors.New("a run is a shard of one group, not of several")
	}
	r.sharding = &s
}

func (s Sharding) config(c *Client) shards.Config {
	return shards.Config{
		Settings: c.leaseSettings(s.Namespace, s.Identity, s.LeaseDuration, s.RenewDeadline, s.RetryPeriod), Group: s.Name,
	}
}

// shard is this replica's part of the keys of a run.
type shard struct {
	client *Client
	config shards.Config

	mu      sync.Mutex
	replica *shards.Replica // nil while there is none
	keys    seam.Keys
	owed    map[string]bool // keys that want a turn when they are this replica's
	tidy    int             // tidied when there are so many
}

// tidyOwed is how many keys are owed a turn at least before those that are gone are looked for.
const tidyOwed = 64

func (c *Client) shard(s *Sharding) *shard {
	return &shard{client: c, config: s.config(c)}
}

// Run implements [seam.Shards]: a shard until ctx ends.
func (s *shard) Run(ctx context.Context, keys seam.Keys) error {
	watch, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer watch.snapshots.Close()
	config := s.config
	config.Watch, config.CatchUp, config.Moved = watch, keys.Sync, s.moved
	s.mu.Lock()
	s.keys, s.owed, s.tidy = keys, make(map[string]bool), tidyOwed
	s.replica, err = shards.Join(ctx, config)
	replica := s.replica
	s.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-watch.snapshots.acc.Done():
		err = watch.snapshots.because(watch.snapshots.acc.Err())
	}
	replica.Leave()
	s.mu.Lock()
	s.replica = nil
	s.mu.Unlock()
	return err
}

// Enter implements [seam.Shards].
func (s *shard) Enter(ctx context.Context, key string) (inner context.Context, leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	replica := s.replica
	if replica == nil || !replica.Take(key) {
		s.owe(key)
		return ctx, func() {}, false
	}
	delete(s.owed, key) // this is the turn that it was owed
	inner, cancel := replica.Context(ctx, key)
	return inner, func() {
		cancel()
		replica.Give(key)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owed[key] && replica.Mine(key) {
			delete(s.owed, key)
			s.keys.Activate(key)
		}
	}, true
}

// owe notes that a key is owed a turn, and forgets, whenever there are twice as many, those that are gone: there is no turn to give them.
func (s *shard) owe(key string) {
	if s.owed == nil {
		return
	}
	if s.owed[key] = true; len(s.owed) < s.tidy {
		return
	}
	s.forgetGone(s.keys.Keys())
	s.tidy = max(tidyOwed, 2*len(s.owed))
}

func (s *shard) forgetGone(there []string) {
	maps.DeleteFunc(s.owed, func(key string, _ bool) bool {
		_, found := slices.BinarySearch(there, key)
		return !found
	})
}

// moved gives keys their turn that have become this replica's, and notes those that have to wait for one.
func (s *shard) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replica == nil {
		return
	}
	there := s.keys.Keys()
	s.forgetGone(there)
	for _, key := range there {
		if !s.replica.Mine(key) {
			s.owed[key] = true
		}
	}
	var due []string
	for key := range s.owed {
		if s.replica.Mine(key) {
			due = append(due, key)
			delete(s.owed, key)
		}
	}
	if len(due) > 0 {
		s.keys.Activate(due...)
	}
}

// leaseWatch is the client's watch of a group's Leases.
type leaseWatch struct {
	snapshots *Snapshots[groupLeases]
	latest    groupLeases
	known     bool
}

type groupLeases struct{ Leases []*coordinationv1.Lease }

func (s *shard) watch(ctx context.Context) (*leaseWatch, error) {
	snapshots, err := Watch[groupLeases](ctx, s.client.With(WithInterval(0), WithDebounce(0, 0), WithTransform(nil)), Query{
		Name: "Leases", Namespace: s.config.Namespace, LabelSelector: shards.Label + "=" + s.config.Group,
	})
	if err != nil {
		return nil, fmt.Errorf("find the other shards: %w", err)
	}
	return &leaseWatch{snapshots: snapshots}, nil
}

// Changed implements [shards.Watch].
func (w *leaseWatch) Changed() <-chan struct{} { return w.snapshots.Changed() }

// Leases implements [shards.Watch].
func (w *leaseWatch) Leases(ctx context.Context) ([]*coordinationv1.Lease, bool, error) {
	var now groupLeases
	_, complete, err := w.snapshots.update(ctx, &now)
	if err != nil {
		return nil, false, err
	}
	if complete {
		w.latest, w.known = now, true
	}
	return w.latest.Leases, w.known, nil
}
