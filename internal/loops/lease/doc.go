// Package lease elects one of several replicas by a Lease (coordination.k8s.io/v1). Package
// shards beneath it divides keys among replicas by Leases, and shares the configuration with this
// one.
//
// Start at [Lead], which runs a leader's work, or at [Stand], which makes a [Candidate]. Requests
// use a dynamic client. The package knows nothing of snapshots.
//
// # Why this is not client-go's tools/leaderelection
//
// That package imports the typed informers, listers and clients of every API group: 242 packages
// that each user of kates would compile, elected or not. A package of its own for elections would
// not help: kates.LeaderElection belongs to package kates, which then could not reach it without
// a registry. The lock and the rules below are ours. Without them 60 lines of the loop remain
// (campaign.go). They keep the semantics of LeaderElector, and the Lease has the same fields, so
// that candidates of both kinds can be rivals:
//
//   - A candidate tries every RetryPeriod, plus a random part of up to 1.2 times that. A leader
//     renews every RetryPeriod, and gives up after RenewDeadline without a success.
//   - A leader renews by an update of what it wrote last, and reads only when that fails.
//   - No clock is compared with another's. A Lease has expired when this candidate has seen it
//     unchanged for the duration that the Lease itself states.
//   - leaseTransitions counts the changes of the holder. acquireTime is that of the present one.
//   - A release writes an empty holder and a duration of one second.
//   - A candidate that comes back under the identity of the holder leads at once. (Under a default
//     identity only if a candidate of this process wrote the Lease.)
//
// # Where it differs
//
// The leader's work may still run when its leadership ends. Therefore:
//
//   - Only [Candidate.Resign] releases a lease, and the caller calls it when the work is done.
//     (client-go's ReleaseOnCancel also releases after a failed renewal, before the work stops.)
//   - A leader that reads another holder in the Lease has lost at once. (client-go goes on trying
//     until the renew deadline.)
//   - A leader that reads its own name in a write that is not its own has lost, too: a copy of the
//     process has the same identity, as have two clients that were given one and know the server by
//     two names (written.go). (client-go goes on, and both lead.)
//   - A lease that was not renewed for its duration is lost, even while the loop waits for an
//     answer. The duration counts from before the request was sent. No other candidate can have
//     the lease sooner, unless clocks run at different rates.
//   - A candidate notices several renewals within one second. (client-go compares whole seconds.)
//   - Fields of the Lease that the election does not know stay as they are.
//   - A default identity belongs to the process and the Lease (identity.go). A new candidate under
//     it leads at once, too, in a term of its own: leaseTransitions grows, as if the identity were
//     another. Under an identity that the user says, a candidate goes on with the term, as
//     client-go's does.
//   - A Lease that cannot be created because its namespace does not exist is an error as any other.
//     (client-go logs each try at its own level.)
//
// A Lease does not fence: a process that stops between a look at its context and a write may
// write while another leads. Package fence, and preconditions on the writes (UID, resource
// version), keep such a write out.
package lease
