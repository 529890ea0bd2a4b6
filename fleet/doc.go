// Package fleet watches and reconciles many clusters: for programs that promote, place, mirror or
// audit across clusters.
//
//	f, err := fleet.New(fleet.Options{Sources: []fleet.Source{...}})
//	if err != nil { ... }
//	defer f.Close()
//
// A [Source] says which clusters there are, and each [Cluster] has a client of its own, of package
// kates. Clusters come, go, fail and change their credentials while the program runs.
//
// # One cluster never harms another
//
// Each cluster has a client, connections, watches and goroutines of its own, and pauses between
// its attempts. Nothing waits for a cluster while it holds a lock. A cluster that is down, hangs,
// or is slow keeps what was last known of it, and is marked stale since its last answer.
//
// Memory is bounded by cluster, too, where [Options].Client has kates.WithMaxObjects: each cluster
// has that many objects of its own. One with more is missing, or keeps what it showed, and its
// status says why; it takes no room from another. Without that option, too, everything that a
// cluster can send has a bound: discovery, OpenAPI, errors, pages, events, headers. docs/bounds.md
// lists them, with what sets each, and the test that shows it.
//
// A cluster is known by its name in the fleet and by how it is reached. The UID that it says is
// what a server says. Two members with one UID stay two, with watches and warm starts of their
// own, and the status shows that their UIDs are alike.
//
// # Loops
//
// [Run] calls a function with snapshots of the whole fleet, and tries again after errors.
//
// [RunEach] calls a function for each key of each cluster. Each cluster has a loop of its own,
// which is kates.RunEach with the cluster's client. It ends when the cluster leaves. Then the
// function is called once more for each key that it was called with, so that outputs can be
// removed. A cluster that does not answer has not left: nothing is called for that. If another
// cluster takes the name, it takes over the keys.
//
// # Controllers
//
// [NewController] makes a controller whose roots are in each cluster: one of package controller
// runs in each, with the cluster's client. It ends when the cluster leaves, and nothing is
// reconciled for that: the cluster cannot be reached.
//
// [NewHomeController] makes a controller whose roots are in one cluster, the home, and which own
// objects in all clusters of the fleet. An owner reference cannot name an owner in another
// cluster: a label with the owner's UID takes its place (kates.OwnedSet, Remote). Nothing is
// pruned while a cluster does not answer, and a finalizer keeps a root until all clusters have
// removed what it owned ([Parts.RemoveOwned]).
//
// # Rotation
//
// A cluster whose configuration changes keeps its client, and with it all that its watches have
// shown and its own writes (kates.Client.Reconnect). The new connection is tried first. If it does
// not work, the old one stays in use, and the status says why. If another cluster answers, by the
// UID of the namespace kube-system, that one takes the name, as another *Cluster with a new
// history.
//
// # Targets on demand
//
// Programs that learn from data which objects matter to them say so by owner: see [Fleet.Targets].
package fleet
