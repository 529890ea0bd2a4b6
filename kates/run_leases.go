package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kates-go/kates/internal/loops/lease"
	"github.com/kates-go/kates/internal/loops/lease/shards"
)

// ErrLeadershipLost is the error of a [Run], or a [RunEach], that led and has lost its lease.
var ErrLeadershipLost = lease.ErrLost

// ErrNeverLed is among the errors of a [Run], a [RunEach] or a controller with a [LeaderElection]
// that ends with an error, and has not led, also where its watch could not start. (A run that was
// cancelled returns nil, and an error of its options is that alone.) The text says why: who held
// the lease, or what kept this replica from it.
var ErrNeverLed = lease.ErrNeverLed

// LeaderElection is an option of [Run] and [RunEach], and of controllers. Of several replicas
// with the same Lease one leads, and only the leader's function is called.
//
//	election := kates.LeaderElection{Namespace: "ingress", Name: "ingress-status"}
//	kates.Run(ctx, client, writeStatus, election)
//
// The others are followers. They watch, and keep their snapshots up to date, so that a new leader
// needs no more than [Client.Sync] does. Its function is called at once, with a snapshot as new as
// the server was when the lease was won: it contains whatever the former leader has written. (A
// kind that the server refuses to list for lack of rights, or does not serve, is left as it is. If
// a list fails otherwise, the leader waits for it, and logs that.) A replica stands for election
// when its first snapshot is complete: one that cannot do the work does not keep others from it.
//
// A leader loses its lease if the API server does not answer, or if another holds it. Then the
// function's context is cancelled, with a [context.Cause] of [ErrLeadershipLost], and Run returns
// such an error when the function has returned. The program ends then, or calls Run again, to
// follow. If Run ends otherwise, it renews the lease until the function has returned, and then
// releases it, which it tries for RenewDeadline at most.
//
// The Lease has the form that client-go's leader election writes. Candidates of both kinds can be
// rivals, and kubectl shows the holder.
//
// [Client.Status] says who leads and since when, and what is wrong; OnChange is told when that
// changes. A Lease that the client may not read or create, or whose namespace does not exist, is
// logged once, is in the status, and keeps [Client.Ready] from nil if the client has never reached
// the Lease. Run goes on trying. If it ends with an error and has not led, that is an
// [ErrNeverLed], and says why.
//
// # Fencing
//
// Leases do not fence: "This implementation does not guarantee that only one client is acting as
// a leader" (https://pkg.go.dev/k8s.io/client-go/tools/leaderelection). A process that was
// stopped for longer than its lease (SIGSTOP, a long garbage collection, a suspended machine)
// goes on in the middle of a write, and does not know. Nor does an identity fence: what a former
// call of Run has left running stays refused, though a later call leads under the same identity.
// Therefore writes of this client under the
// function's context, and under contexts derived from it (context.WithoutCancel too), are bound
// to the lease:
//
//   - No write is sent when the lease is over: it fails with [ErrLeadershipLost] ([ErrKeyLost]
//     for shards). The lease is checked when the method is called, and again where the request
//     leaves the process, when its connection exists and its body is read. The check uses the
//     monotonic and the wall clock, whichever says more. It does not notice a machine that stands
//     still together with all its clocks, as a paused virtual machine may.
//   - The server refuses writes that are on their way by then. Updates without a resource
//     version, patches, applies and deletions carry preconditions: the UID and the resource
//     version that the client knew when the function was called, or that the function has written
//     since. A new leader that has written to the object has made that version an old one. The
//     result is a conflict ([IsConflict]), whatever the clocks say. An object that nobody has
//     written to since is as it was when the lease was held. A later writer that starts from its
//     former state gets the conflict. Upsert, [Modify] and the helpers on top of them read and
//     compare by themselves, and send nothing when the lease is over.
//
// This costs a conflict, and so another call of the function with a newer snapshot, where
// somebody else writes to an object while the function runs, though the write does not depend on
// that. It costs one more request for each write to an object that the client does not watch.
// [Unfenced] leaves the preconditions of a write out. client-go's fake has no versions, and so no
// preconditions.
//
// A creation can have no precondition. A creation that was on its way when the lease ended lands
// late, if no object of that name exists then. Therefore derive the names of created objects from
// their purpose, and do not generate them. Then the creation fails where another leader has
// created the same (AlreadyExists). If it makes an object that was deleted meanwhile, or is not
// wanted any more, the watch of the new leader shows it, and the leader recognizes it by its name
// or owner, and removes it. If the object refers to an owner that is gone, the garbage collector
// removes it. An apply of an object that does not exist is a creation, too. If the object exists
// by then, the apply merges.
//
// It needs the rights to get, create and update leases (coordination.k8s.io) in Namespace, and is
// not subject to the client's rate limit.
type LeaderElection struct {
	// Namespace of the Lease. Default: the client's.
	Namespace string
	// Name of the Lease. Candidates with the same one are rivals, also within one program.
	Name string
	// Identity of this candidate, unique at any time. Default: the host's name, and a text that
	// follows from this process, the API server and the Lease. So a process that comes back after
	// an outage does not wait until its own former lease has expired: when Run is called again, it
	// leads at once, if nobody else does. (Clients of one API server are recognized by its address;
	// a client with a dialer, a transport or a proxy of its own, or on a dynamic client, is alone.)
	//
	// If a program has several candidates for one Lease at a time, their default identities differ
	// by a number: each takes the lowest that is free, and gives it back when Run returns. An
	// Identity that you say, and that a candidate of the program has at that time, is an error.
	//
	// A copy of the process (a virtual machine that was cloned, or restored twice from a snapshot)
	// has the same default identity. A leader that was copied goes on until one of the two renews
	// the lease. The other one reads at its next try, within RetryPeriod, that it has not written
	// that, and has lost. A candidate waits for the lease of a copy as for any other's. But two
	// processes under one Identity that you say take the lease from each other, since each takes
	// the other one for itself: the former leader notices at its next try, too.
	Identity string
	// LeaseDuration is how long others wait for a renewal before they take the lease: whole
	// seconds. Default 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up: less than
	// LeaseDuration. Default 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is between two tries of any candidate: less than RenewDeadline divided by 1.2.
	// Default 2 s.
	RetryPeriod time.Duration
	// ReleaseOnCancel releases the lease when Run ends, so that others need not wait for it to
	// expire. Default (nil): true. It is safe here, since the function has returned. If it is
	// false, this replica keeps the lease until it expires, and leads again without an election if
	// it comes back before that: by a call of Run in the same process, or in another process under
	// the Identity that you say.
	ReleaseOnCancel *bool
	// OnChange is told who leads: of the first state that is known, and whenever Leading, Holder,
	// or whether there is an Error, has changed. It is what client-go's OnStartedLeading,
	// OnStoppedLeading and OnNewLeader are: for a metric, or a label of the pod. The leader's work
	// is the function of Run, whose context ends with the leadership.
	//
	// Calls come from one goroutine, one after another. Changes that come while one runs are one
	// call, with the state as it is then. No renewal waits for it, but Run does, at its end: the
	// last call has returned, and was told that this replica does not lead. A panic is logged.
	OnChange func(LeaderStatus)
}

func (e LeaderElection) applyToRun(s *runSettings) {
	if s.election != nil {
		s.reject(errors.New("a run stands for one lease, not for several"))
	}
	s.election = &e
}

// config is that of the candidate.
func (e LeaderElection) config(c *Client) lease.Config {
	config := lease.Config{
		Settings: c.leaseSettings(e.Namespace, e.Identity, e.LeaseDuration, e.RenewDeadline, e.RetryPeriod),
		Name:     e.Name, Release: e.ReleaseOnCancel == nil || *e.ReleaseOnCancel,
	}
	if e.OnChange != nil {
		config.Changed = func(s lease.Status) { e.OnChange(leaderStatus(s)) }
	}
	return config
}

// leaseSettings are those of a Lease that this client holds.
func (c *Client) leaseSettings(namespace, identity string, duration, deadline, retry time.Duration) lease.Settings {
	return lease.Settings{
		Client: c.core.Leases.Client, Server: c.core.Leases.Server, Namespace: cmp.Or(namespace, c.core.Namespace), Identity: identity,
		FieldManager: c.core.FieldManager, Logger: c.core.Log,
		LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry,
	}
}

// leaseWatch is the client's watch of a group's Leases.
type leaseWatch struct {
	*Snapshots[groupLeases]
	latest groupLeases
	known  bool
}

type groupLeases struct{ Leases []*coordinationv1.Lease }

func (c *Client) watchLeases(ctx context.Context, namespace, group string) (*leaseWatch, error) {
	at := c.With(WithInterval(0), WithDebounce(0, 0), WithTransform(Transform{}))
	snapshots, err := Watch[groupLeases](ctx, at, Query{
		Name: "Leases", Namespace: namespace, LabelSelector: shards.Label + "=" + group,
	})
	if err != nil {
		return nil, fmt.Errorf("find the other shards: %w", err)
	}
	return &leaseWatch{Snapshots: snapshots}, nil
}

// Leases implements [shards.Watch].
func (w *leaseWatch) Leases(ctx context.Context) ([]*coordinationv1.Lease, bool, error) {
	var now groupLeases
	_, complete, err := w.update(ctx, &now)
	if err != nil {
		return nil, false, err
	}
	if complete {
		w.latest, w.known = now, true
	}
	return w.latest.Leases, w.known, nil
}

// Done implements [keyed.LeaseWatch].
func (w *leaseWatch) Done() <-chan struct{} { return w.acc.Done() }

// Err implements [keyed.LeaseWatch].
func (w *leaseWatch) Err() error { return w.because(w.acc.Err()) }
