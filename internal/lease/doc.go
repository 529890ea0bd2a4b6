// Package election makes one of several replicas the leader, by a Lease (coordination.k8s.io/v1) and client-go's
// tools/leaderelection.
//
// Start at [Stand]. Around client-go's loop there is, because the leader's work may still run when its leadership ends:
//
//   - A lease is released only by [Candidate.Resign], which the caller calls when the work is done. (client-go's
//     ReleaseOnCancel releases when a renewal has failed, too, before it tells the work to stop.)
//   - Who reads that another holds the lease has lost at once. (client-go goes on trying until the renew deadline.)
//   - A lease that was not renewed for its duration, counted from before the request was sent, is lost, whatever the
//     loop is waiting for: no other candidate can have it sooner, unless clocks run at different rates.
//   - A candidate notices renewals that come more often than once a second. (client-go compares whole seconds.)
//
// All the same leases do not fence: see the package comment of k8s.io/client-go/tools/leaderelection. A process that is
// stopped between looking at its context and writing may write when another leads. Preconditions (UID, resource version) on
// the writes are what keeps such a write out.
package election
