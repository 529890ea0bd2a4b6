// Package shards divides keys among replicas that find each other through Leases
// (coordination.k8s.io/v1), one Lease per replica.
//
// Start at [Join]. A [Replica] says which keys are its own ([Replica.Take]). The type core is the
// protocol, without I/O, goroutines and clocks.
//
// # Membership
//
// Each replica has a Lease, with a label for the group, and renews it. The members of a group are those
// whose Lease exists. A Lease that is not renewed for its duration, as another replica observes it, is
// deleted by that replica, with its UID and version as preconditions. So a replica whose renewal is
// late learns that it is no member, and a deletion that comes too early fails. No clock is compared
// with another's. A replica that leaves deletes its own Lease.
//
// # Who owns a key
//
// A key belongs to the member with the highest hash of (group, key, member), rendezvous hashing: when a
// member comes or goes, only keys that it gets or had move. The hash is part of the protocol, and never
// changes.
//
// # Handing over
//
// Replicas see members come and go at different times. So each claims in its own Lease the set of
// members by which it decides, its claim, and it has a key only
//
//  1. if it is the key's owner by its claim, by every claim that it may have written, and by the
//     members that it sees;
//  2. if it has seen its own claim come back through the watch of the Leases, and so every claim that
//     was written before it;
//  3. and if no other member that it sees is the key's owner by that one's own claim.
//
// A replica that sees other members takes no key any more that would be another's. It waits until its
// work for such keys has ended, and only then writes its new claim.
//
// Then no key has two owners. Of two claims by which both own it one was written later, and its writer
// has seen the other one (2), which stays as it is as long as the key is in use (and then 3 forbids
// it). In the end each key has one owner: when all see the same members and former work has ended, all
// claims are alike. A replica whose work has not ended after a lease duration has its contexts cancelled,
// and may not write any more; after two the others do not wait for it any longer.
//
// Before a replica begins with keys that it has got, its watches catch up with the server: it sees all
// that the former owner has written.
//
// A replica that is stopped, or cannot renew its Lease, loses all keys when it has not been renewed for
// its duration, counted from before the request was sent; others have waited longer. Package fence
// stops the writes of a process that does not know it yet.
package shards
