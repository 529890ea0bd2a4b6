package kates

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/kates-go/kates/internal/lease"
)

// ErrLeadershipLost is the error of a [Run], or a [RunEach], that led and does so no more.
var ErrLeadershipLost = lease.ErrLost

// LeaderElection is an option of [Run] and [RunEach]: of several replicas with the same Lease one leads, and only the leader's function
// is called.
//
//	kates.Run(ctx, client, writeStatus, kates.LeaderElection{Namespace: "ingress", Name: "ingress-status"})
//
// The others are followers. They watch, and keep their snapshots up to date, so that winning costs one list of each query: the
// function is called at once, with a snapshot as new as the server was when the lease was won, so that whatever the former
// leader wrote is in it. (A kind that the server refuses to list for lack of rights, or does not serve, is left as it is; one
// that fails otherwise is waited for, and logged.) A replica stands for election as soon as its first snapshot is complete: one that
// cannot do the work does not keep others from it.
//
// Who loses the lease, because the API server does not answer or because another holds it, has the function's context cancelled, with
// a [context.Cause] of [ErrLeadershipLost], and Run returns such an error when the function has returned. A program ends then, or calls
// Run again, to follow. If Run ends otherwise, the lease is renewed until the function has returned, and then released, which is
// tried for RenewDeadline at most.
//
// # Fencing
//
// Leases do not fence: "This implementation does not guarantee that only one client is acting as a leader"
// (https://pkg.go.dev/k8s.io/client-go/tools/leaderelection). A process that was stopped for longer than its lease (SIGSTOP, a long
// garbage collection, a suspended machine) goes on in the middle of a write, and does not know. So the writes of this client under the
// function's context, and what is derived from it (context.WithoutCancel too), are bound to the lease:
//
//   - None is sent when the lease is over: it fails with [ErrLeadershipLost] ([ErrKeyLost] for shards). That is looked at when the method is called, and
//     again where the request leaves the process, when its connection is there and its body is read, by the monotonic and the wall
//     clock, whichever says more. A machine that stands still together with all its clocks, as a paused virtual one may, is not noticed so.
//   - What is on its way by then the server refuses: updates without a resource version, patches, applies and deletions carry as preconditions the
//     UID and the resource version of the object that the client knew when the function was called, or that the function has written since. Who has the
//     lease and has written to the object has made that version an old one: a conflict ([IsConflict]), whatever the clocks say. An object that
//     nobody has written to since is as it was when the lease was held; who writes to it next, from what it was before, gets the conflict.
//     Upsert, [Modify] and the helpers that stand on them read and compare by themselves, and are sent no more when the lease is over.
//
// It costs a conflict, and so another call of the function with a newer snapshot, where somebody else writes to an object while the function
// runs, though the write does not depend on that; and one request more for each write to an object that the client does not watch. [Unfenced] leaves
// the preconditions of a write out. client-go's fake has no versions, and so no preconditions.
//
// Nothing can be a precondition of a creation. One that was on its way when the lease ended lands late, if there is no object of that name then. So
// names of what is created are made of what it is for, and not generated: then the creation fails where another has created the same (AlreadyExists),
// and what it makes otherwise, an object that was deleted meanwhile or is not wanted any more, is what its watcher sees, knows by its name or owner, and removes. With a
// reference to an owner that is gone the garbage collector does so. An apply of an object that does not exist is a creation, too, and if it
// exists by the time, merges into it.
//
// It needs the rights to get, create and update leases (coordination.k8s.io) in Namespace, and is
// not subject to the client's rate limit.
type LeaderElection struct {
	// Namespace of the Lease. Default: the client's.
	Namespace string
	// Name of the Lease. Those who stand for the same one are rivals, also within one program.
	Name string
	// Identity of this candidate, which nobody else may have at the time. Default: the host's name and a random UUID.
	Identity string
	// LeaseDuration is how long others wait for a renewal before they take the lease: whole seconds. Default 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up: less than LeaseDuration. Default 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is between two tries of anybody: less than RenewDeadline divided by 1.2. Default 2 s.
	RetryPeriod time.Duration
	// ReleaseOnCancel releases the lease when Run ends, so that others need not wait for it to expire. Default (nil): true. It
	// is safe here, since the function has returned. False is for a candidate that comes back at once under the same Identity.
	ReleaseOnCancel *bool
}

func (e LeaderElection) applyToRun(s *runSettings) {
	if s.election != nil {
		s.wrong = errors.New("a run stands for one lease, not for several")
	}
	s.election = &e
}

// config is that of the candidate.
func (e LeaderElection) config(c *Client) lease.Config {
	return lease.Config{
		Settings: c.leaseSettings(e.Namespace, e.Identity, e.LeaseDuration, e.RenewDeadline, e.RetryPeriod),
		Name:     e.Name, Release: e.ReleaseOnCancel == nil || *e.ReleaseOnCancel,
	}
}

// leaseSettings are those of a Lease that this client holds.
func (c *Client) leaseSettings(namespace, identity string, duration, deadline, retry time.Duration) lease.Settings {
	return lease.Settings{
		Client: c.core.leases, Namespace: cmp.Or(namespace, c.core.namespace), Identity: identity,
		FieldManager: c.core.fieldManager, Logger: c.core.log,
		LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry,
	}
}

// leader is a run as the work of a leader.
type leader struct {
	watching
	tries   *tries
	poked   <-chan struct{}             // by other triggers, which are for who leads; nil if they are not told so
	refresh func(context.Context) error // brings what is shown up to date
	// lead calls the function, with contexts as [lease.Work] has them.
	lead func(ctx, lease context.Context) error
}

// watching is a watch whose snapshots a follower keeps up to date.
type watching interface {
	Ready() error
	Changed() <-chan struct{}
	Sync(ctx context.Context) error
	Err() error
	Done() <-chan struct{}
}

func (r *runner[S]) leader() leader {
	return leader{
		watching: r.snapshots.acc, tries: &r.tries, poked: r.poked,
		lead: func(ctx, _ context.Context) error { return r.loop(ctx) },
		refresh: func(ctx context.Context) error {
			_, _, err := r.current(ctx)
			return err
		},
	}
}

// Prepare follows until there is a snapshot.
func (l leader) Prepare(ctx context.Context) error {
	return l.follow(ctx, nil, func() bool { return l.Ready() == nil })
}

// Follow keeps the snapshot up to date.
func (l leader) Follow(ctx context.Context, won <-chan struct{}) error {
	return l.follow(ctx, won, func() bool {
		select {
		case <-won:
			return true
		default:
			return false
		}
	})
}

func (l leader) follow(ctx context.Context, wake <-chan struct{}, until func() bool) error {
	for !until() {
		if err := l.refresh(ctx); err != nil {
			return err
		}
		select {
		case <-l.Changed():
		case <-l.poked:
		case <-wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// CatchUp waits until the watches are as new as the server is now.
func (l leader) CatchUp(ctx context.Context) error {
	for failures := 1; ; failures++ {
		err := l.Sync(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || l.Err() != nil {
			return err
		}
		if failures == 1 {
			l.tries.log.Error(err, "cannot learn what the former leader has done, will keep trying")
		}
		pause(ctx, l.tries.settings.backoff.After(failures), l.Done())
	}
}

// Lead calls the function.
func (l leader) Lead(ctx, lease context.Context) error { return l.lead(ctx, lease) }
