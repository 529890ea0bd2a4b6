// Package controller reconciles. The root is an object of one kind. For each root it calls a
// function with everything that belongs to the root, whenever some of that has changed.
//
//	type AppParts struct {
//	    Root        *App                 `kates:",root"`  // what is reconciled
//	    Deployments []*appsv1.Deployment `kates:",owned"` // what it controls
//	    Settings    []*corev1.ConfigMap                   // watched; a query has a Key
//	    Info        controller.Info                       // the key, the attempt, a departure
//	}
//
//	apps, err := controller.New(client, "apps", func(ctx context.Context, p *AppParts) (controller.Result, error) {
//	    if p.Info.Departure != "" {
//	        return controller.Done, cleanUp(ctx, p.Root)
//	    }
//	    return controller.Done, converge(ctx, p)
//	}, kates.Query{Name: "Settings", Key: kates.ByLabel("app")}, kates.WithWorkers(4))
//	if err != nil { ... }
//	err = apps.Run(ctx)
//
// Start with [New]. The function gets a snapshot, not a name. It has nothing to read, to wait
// for, or to map. The package builds on the partitions of kates.WatchEach. Programs without a
// root (an output per namespace, or per label) use [kates.RunEach], and those with one output for
// all [kates.Run].
//
// # The struct
//
// Its fields are like those of [kates.Watch]. A [kates.Query] may refine the field of its name.
// The differences are:
//
//   - One field is the root: a pointer to an API type that the client's scheme knows. Or, with the
//     kind in the tag (`kates:"apps.example.com,root"`), a pointer to [kates.Unstructured],
//     [kates.PartialObjectMetadata] or a plain struct that decodes from the object; then
//     Info.Root is the root as an object. Its key is "namespace/name", or its name if the kind
//     has no namespace.
//   - Owned fields have what the root controls: the objects whose controller reference has its
//     UID. Objects of an earlier root of that name are not among them. A root without a namespace
//     may own objects in any. Owned kinds differ from the root's kind: in a tree of one kind a
//     second field of it, watched with [kates.ByOwner], has a root's children.
//   - All others are watched. With a Key, a function of the object, an object belongs to the
//     roots of the keys that it returns. Without one, or where that is [kates.EveryPartition], it
//     belongs to every root.
//   - A field whose tag says later (`kates:",owned,later"`) has no query, and is nil, until
//     [Controller.Add] adds one. The root does not come later.
//   - A field of type [Info] describes the turn.
//   - A field of type []*[kates.Delta] has the changes of all objects of the key since its last
//     reconcile without an error (a permanent error counts as none). For an owned field it also
//     has the objects that an earlier root of the name controls, which the field does not show.
//     When another root has taken over the key, objects of the former root give no delete, and
//     objects that the new root owned before the controller saw it give no add. So the deltas say
//     where to look, and the fields what exists. Only for watched fields do the deltas, applied
//     to the former content of a field, give its present content. A departed root is a delete,
//     though the field of the root has it.
//
// The struct is the reconciler's own; the objects are shared and read-only. What did not change
// is the same pointer as last time.
//
// # When a root is reconciled
//
// It is reconciled once when all kinds are complete, and not before, even if only a kind other
// than the root's cannot be listed. After that, it is reconciled whenever something in its struct
// has changed in a way that is worth a signal ([kates.Query].Signal: kates.GenerationChanged on
// the root leaves out its status), by [Controller.Trigger], by [kates.WithTriggers], and when the
// last reconcile has asked for it. Changes coalesce: everything that comes while a key is being
// reconciled, or waits, is one more reconcile. Two workers never reconcile the same key at a
// time. A root whose parts have changed, or that is triggered, goes before roots that wait for
// their first reconcile, or for a change that concerns all of them; one reconcile of five is
// theirs.
//
// A reconcile sees what the controller has written before it (G4 of package kates), whatever the
// watches have brought: it never creates twice because a cache is late. The controller's own
// writes reconcile their key again like other changes, unless [kates.WithQuietOwnWrites] says
// otherwise. With [kates.WithDebounce] a key waits until nothing has changed for it for a while;
// the initial objects, a trigger, and another try do not wait.
//
// # What it returns
//
// [Done], or [RequeueAfter], which means one more reconcile after that time, if none comes
// earlier. An error, or a panic, backs that key alone off, exponentially ([kates.WithBackoff]),
// whatever changes meanwhile. [Info] says which attempt it is, and [kates.WithOnError] gets each
// error, as a [*kates.KeyError]. RequeueAfter with an error sets the wait itself, by the attempt,
// the kind of error, or what a server has asked for. An error marked by [kates.Permanent] is not
// tried again until something changes for the key, or a trigger comes. In kates.RunEach such an
// error ends the loop. Here it does not: only one object is wrong, and somebody may mend it.
//
// # Roots that depart
//
// A root with finalizers is reconciled, while it is being deleted, like any other: it has a
// deletionTimestamp, and stays until the reconciler has removed its finalizer ([kates.Client] has
// helpers). That is the only way to miss no deletion: an object that was deleted while the
// controller did not run has left no trace. A root that is deleted while it gets its finalizer
// may be gone at once (see [kates.UnderFinalizer]); it departs with the finalizer.
//
// A root without finalizers that does not exist any more is reconciled with the last object that
// was known. Info.Departure says whether it was deleted, or has left the query, by a label that has
// changed, and still exists (the server is asked, where the root's query has selectors, a Where or
// Refs). That is repeated until the reconcile returns neither an error, other than a permanent
// one, nor RequeueAfter. Then the key is forgotten, whatever objects are left that the root owned:
// the garbage collector removes those. If another root has the name by then, it is reconciled
// next, never before. A reconciler whose struct has no field of type Info never sees a root that
// does not exist: the key is forgotten at once.
//
// A key without a root is not reconciled: that of an object that outlived its owner, or that names
// a root which does not exist yet. A root that does not decode has not departed: its key fails
// with a permanent error until it is mended. If it is another one than the root that was known by
// the name, that one has departed, and its departure is reconciled first. A root that has never
// decoded may have no key yet (where its type is decoded straight from the wire, or its query's
// Where or Transform has failed): Status counts it as invalid, and [kates.WithOnInvalid] reports
// it.
//
// # Several replicas
//
// With [kates.LeaderElection] one replica reconciles, and the others watch, so that they know
// everything when they take over. When a leader loses the lease, the contexts of its reconciles
// are cancelled at once. The departure of a root is reconciled by the leader that has reconciled
// the root: not by a former follower, nor by a new leader that takes over before the departure
// has been reconciled without an error. Use a finalizer where no departure may be missed.
//
// With [kates.Sharding] the roots are divided among all replicas, by the hashes of their UIDs or
// of their namespaces. Each replica holds its own roots, and what they own, and reconciles these.
// What is neither root nor owned it watches whole. When a replica comes or goes, only roots that
// it gets or had move, and what one has too much. No two replicas reconcile a root at a time. The
// new owner begins when the former one has ended and its writes are seen. When a root departs, the
// replica that owns it at that time reconciles the departure. If the root is moving between
// replicas then, nobody may reconcile it, as when nothing runs. Finalizers are for that. A root
// that a replica loses to another one has not departed.
//
// A replica may stop for longer than its lease, and go on without knowing. It cannot write then
// ([kates.LeaderElection], Fencing): its writes are not sent when the lease is over, and those
// that were on their way carry the UID and the resource version of the reconcile's objects, so
// that the server refuses them after another's write. For this, make writes through the
// controller's client, under the reconcile's context, and derive the names of created objects
// from their root.
//
// # For those who know controller-runtime
//
//	controller-runtime                          here
//	Reconcile(ctx, Request)                     the function; Root in place of Request and Get
//	client.Get, client.List of a cache          fields; kates.Get for what is not among them
//	For                                         the field tagged root
//	Owns                                        fields tagged owned, already sorted out by owner
//	Watches, EnqueueRequestsFromMapFunc         fields with a Query.Key; the objects are in the struct, too
//	field indexes                               Query.Key, or kates.Lookup
//	predicates                                  Query.Signal, selectors
//	WaitForSync of each source                  G1: nothing runs before all kinds are complete
//	a stale cache, expectations                 G4: own writes are seen
//	Result{RequeueAfter}, TerminalError         RequeueAfter, kates.Permanent
//	Result{}, and RequeueAfter: 0, which is it  Done; RequeueAfter(0) asks for another reconcile at once
//	MaxConcurrentReconciles, RateLimiter        kates.WithWorkers, kates.WithBackoff
//	obj.Status.X = x; Status().Update(obj)      Root is read-only: kates.ModifyStatus
//	retry.RetryOnConflict                       kates.ModifyStatus and kates.Modify retry
//	CreateOrUpdate, SetControllerReference      Client.ApplyOwned
//	AddFinalizer, RemoveFinalizer               kates.UnderFinalizer
//	EventRecorder                               kates/events
//	the fake client; envtest                    kates/katestest; an API server of your own
//	source.Channel                              kates.WithTriggers, Trigger, TriggerAll
//	NotFound of the deleted object              Info.Departure, with the last known object
//	Manager                                     none is needed; a Controller is a manager.Runnable
//
// [Controller.Start] and [Controller.NeedLeaderElection] make it a manager.Runnable, so that a
// program can move piece by piece: manager.Add(apps). It does not use the manager's caches. All
// controllers of one [kates.Client] share its watches.
package controller
