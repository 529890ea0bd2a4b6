// Package shards divides keys among replicas that find each other through Leases
// (coordination.k8s.io/v1), one Lease per replica.
//
// Start at [Join]. A [Replica] says which keys are its own ([Replica.Take]). The type core is the
// protocol, without I/O, goroutines and clocks: registration is the replica's own Lease, members
// are the others, and ownership says which keys the replica owns.
//
// # Membership
//
// Each replica has a Lease, with a label for the group, and renews it. The members of a group are
// those whose Lease exists. If a replica sees that another one's Lease was not renewed for its
// duration, it deletes that Lease, with the UID and version as preconditions. So a replica whose
// renewal is late learns that it is no member, and a deletion that comes too early fails. No
// clock is compared with another's. A replica that leaves deletes its own Lease.
//
// # Who owns a key
//
// A claim says which member owns a key. There are two kinds, and each is a pure function of the
// key.
//
// A set of members gives a key to the member with the highest hash of (group, key, member). This
// is rendezvous hashing: when a member comes or goes, only the keys that it gets or had move. The
// hash is part of the protocol, and never changes.
//
// A plan gives each member ranges of hashes ([shardrange.Plan]). It is for keys whose objects a
// server can select by the same hash ([Config.By]). The member with the lowest name proposes the
// next plan in its Lease, and all go by the newest plan that they have seen: by number, then by
// proposer. If two replicas propose, one of the plans is newer. Nothing but the balance depends on
// what a plan is made of: each Lease says how many objects its holder has, by their hashes. A
// proposer waits RetryPeriod for other members that come. If a member has gone, it does not wait.
//
// Members that know no plans, or have other fields, go by sets; as long as there is one, so do
// all. A Lease with a plan has its holder as the only member of its set. So a member of a former
// version takes all keys for that holder's, and has none. If it was there before, the writer of
// the plan has seen its set, by rule 2, and rule 3 is about that.
//
// # Handing over
//
// Replicas see members come and go, and plans, at different times. So each writes its claim into
// its own Lease. It has a key only if all of the following hold:
//
//  1. It owns the key by its claim, by every claim that it may have written, and by what it goes
//     for: the set of the members that it sees, or the newest plan. A claim whose update had no
//     answer may be stored late, until a later update of the Lease has succeeded.
//  2. It has seen its own claim in the watch of the Leases, and so every claim that was written
//     before it.
//  3. No other member that it sees owns the key by that member's own claim.
//
// A replica that goes for another claim takes no more of the keys that are others' by that. It
// waits until its work for such keys has ended, and only then writes its new claim.
//
// Therefore no key has two owners. Suppose two replicas own a key, each by its own claim. One of
// the claims was written later, and its writer has seen the other one (2). The other one stays as
// it is as long as the key is in use, and so the writer may not have the key (3). In the end each
// key has one owner: when all replicas see the same members, and former work has ended, all
// claims are alike: a plan that is about other members is followed by a newer one. If a replica's
// work has not ended after one lease duration, its contexts are cancelled, and it may not write
// any more. After two lease durations the others do not wait for it any longer.
//
// A replica that comes back under its identity waits until its former Lease has expired, since
// another process may have written that. If the identity was made by this process
// (lease.Settings.OwnIdentity), and the Lease is as this process wrote it (lease.Written), then it
// knows that the former replica is gone, and deletes the Lease, as one that leaves does. It waits
// until no work is left in the process.
//
// A copy of the process has the same identity and the same Lease. Of two such members one renews
// first. The update of the other one fails, it reads what it has not written, and it has lost its
// keys. Until then both have them.
//
// Before a replica begins with new keys, its watches catch up with the server: it sees everything
// that the former owner has written. With plans, they also bring the objects of its hashes
// ([Config.Bring]): of those that it owns by any claim that it may have written, or goes for. So
// it owns no key whose objects they do not bring, and they lose a key's objects only when the
// replica owns the key by no such claim. A key that is lost is not taken for one that is gone.
//
// A replica that is stopped, or cannot renew its Lease, loses all keys after the Lease's duration
// without a renewal. The duration counts from before the request was sent, and others wait
// longer. Package fence stops the writes of a process that does not know of the loss yet.
package shards
