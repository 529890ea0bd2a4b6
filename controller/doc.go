// Package controller reconciles: it calls a function for each object of a kind, the root, with everything that belongs to it, whenever
// something of that has changed.
//
//	type AppParts struct {
//	    Root        *App                 `kates:",root"`  // what is reconciled
//	    Deployments []*appsv1.Deployment `kates:",owned"` // what it controls
//	    Settings    []*corev1.ConfigMap                   // watched besides: a query's Key says for whom
//	    Info        controller.Info                       // which key, which attempt, and whether the root has departed
//	}
//
//	apps, err := controller.New(client, "apps", func(ctx context.Context, p *AppParts) (controller.Result, error) {
//	    if p.Info.Departed != "" {
//	        return controller.Done, cleanUp(ctx, p.Root)
//	    }
//	    return controller.Done, converge(ctx, p)
//	}, kates.Query{Name: "Settings", Key: kates.ByLabel("app")}, kates.Workers(4))
//	if err != nil { ... }
//	err = apps.Run(ctx)
//
// Start with [New]. The function is given a snapshot, not a name: there is nothing left to read, to wait for, or to map. The package stands on
// kates.WatchEach; programs without a root (an output per namespace, or per label) use [kates.RunEach], and those with one output for all
// [kates.Run].
//
// # The struct
//
// Its fields are those of [kates.Watch], each of which may be refined by a [kates.Query] of its name, with these differences:
//
//   - One is the root: a pointer to an API type that the client's scheme knows, or to [kates.Unstructured] or [kates.PartialObjectMetadata], with
//     the kind in the tag: `kates:"apps.example.com,root"`. Its key is "namespace/name", or its name if the kind has no namespace.
//   - Those that are owned have what the root controls: the objects whose controller reference has its UID. What was left by an earlier root
//     of that name is not among them. A root without a namespace may own objects in any. They are of other kinds than
//     the root: in a tree of one kind a second field of it, watched with [kates.ByOwner], has a root's children.
//   - All others are watched. With a Key, a function of the object, an object belongs to the roots of the keys that it returns; without one, or
//     where that is [kates.EveryPartition], to every root.
//   - A field of type [Info] is filled with what the turn is about.
//   - One of []*[kates.Delta] has what has changed, since the key's last reconcile without an error (a permanent one counts as none), among all objects of
//     the key, by their names: for an owned field also those that an earlier root of the name controls, which the field does not show. And where another
//     root has the key than last time, what was the former one's is no delete, and what the new one owned before it was seen no add. So they say
//     where to look, and the fields what is there; only for the fields that are watched besides do they give, applied to what those showed, what
//     they show. A departed root is a delete, though the field of the root has it.
//
// The struct is the reconciler's own; the objects are shared and read-only. What did not change is the same pointer as last time.
//
// # When a root is reconciled
//
// Once when all kinds are complete, and not before: also not when the root's kind is complete and another one cannot be listed. Then whenever
// something in its struct has changed in a way that is worth it ([kates.Query].Signal: kates.GenerationChanged on the root leaves out its
// status), by [Controller.Trigger], by [kates.AlsoOn], and by what the last reconcile has asked for. Changes coalesce: what comes while a
// key is being reconciled, or waits, is one more reconcile. A key is never reconciled by two workers at a time.
//
// A reconcile has what the controller has written before it (G4 of package kates), whatever the watches have brought: it never creates twice
// because a cache is late. The controller's own writes reconcile their key again like other changes, unless
// [kates.WithQuietOwnWrites] says otherwise. With [kates.WithDebounce] a key waits until nothing has changed for it for a while; what there is at
// first, a trigger, and a try again do not.
//
// # What it returns
//
// [Done], or [RequeueAfter]: one more reconcile then, if nothing comes earlier. An error, or a panic, backs that key alone off, exponentially
// ([kates.WithBackoff]), whatever changes meanwhile; [Info] says which attempt it is, and [kates.OnError] is told of each, as a
// [*kates.KeyError]. RequeueAfter with an error sets the wait itself, by the attempt, the kind of error, or what a server has asked for. An error
// marked by [kates.Permanent] is not tried again until something changes for the key, or a trigger comes; unlike that of kates.RunEach it ends
// nothing: what is wrong is one object, which somebody may mend.
//
// # Roots that depart
//
// A root with finalizers is reconciled, while it is being deleted, like any other: it has a deletionTimestamp, and stays until the reconciler
// has taken its finalizer away ([kates.Client] has helpers). That is the only way to miss no deletion: what was deleted while the controller
// did not run has left no trace.
//
// Without, a root that is not there any more is reconciled with the last object that was known: Info.Departed says whether it was deleted, or has
// left the query, by a label that has changed, and still exists (the server is asked, where the root's query has selectors or Refs). That is repeated until it
// returns neither an error, other than a permanent one, nor RequeueAfter; then the key is forgotten, whatever objects are
// left that it owned: those are the garbage collector's. If another root has the name by then, it is reconciled next, never before. A
// reconciler whose struct has no field of type Info is not told: it never sees a root that is not there, and the key is forgotten at once.
//
// What has a key but no root, an object that outlived its owner, or that names a root before that exists, is not reconciled. A root that does not
// decode has not departed: its key fails with a permanent error until it is mended. If it is another one than the root that was known by the name,
// that one has departed, and the reconciler is told so first. One that has never decoded may have no key yet (where its type is decoded straight from the
// wire, or its query's Transform has failed): Status counts it as invalid, and [kates.WithInvalid] tells of it.
//
// # Several replicas
//
// With [kates.LeaderElection] one replica reconciles, and the others watch, so that they know everything when they take over. Who loses the lease
// has the contexts of its reconciles cancelled at once. Of a root that departs the replica that leads is told, if it has reconciled it: not who was a
// follower then, nor who takes over before the departure has been reconciled without an error. What must not be missed needs a finalizer.
//
// With [kates.Sharding] the keys are divided among all replicas, by a hash; each watches everything, and reconciles its own. When a replica comes or
// goes, the keys that move are those that it gets or had: no key is reconciled by two, and who gets one begins when the
// former owner has ended and its writes are seen. A root that departs is told to the key's owner at that time; one that departs while its key is on its way
// may be told to nobody, like one that departs while nothing runs: that is for finalizers.
//
// A replica that was stopped for longer than its lease, and goes on without knowing, is kept from writing ([kates.LeaderElection], Fencing): its writes are not
// sent when the lease is over, and those that were on their way carry the UID and the resource version of what the reconcile was made of, so
// that the server refuses those that come after another's. For this, writes are made through the controller's client, under the
// reconcile's context, and what is created has a name that follows from its root.
//
// # For who knows controller-runtime
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
//	MaxConcurrentReconciles, RateLimiter        kates.Workers, kates.WithBackoff
//	obj.Status.X = x; Status().Update(obj)      Root is read-only: DeepCopy and kates.SetStatus, or kates.ModifyStatus
//	retry.RetryOnConflict                       both retry by themselves, as kates.Modify does
//	CreateOrUpdate, SetControllerReference      Client.ApplyOwned
//	AddFinalizer, RemoveFinalizer               kates.UnderFinalizer
//	EventRecorder                               kates/events
//	envtest, the fake client                    kates/katestest
//	source.Channel                              kates.AlsoOn, Trigger, TriggerAll
//	NotFound of the deleted object              Info.Departed, with the last known object
//	Manager                                     none is needed; a Controller is a manager.Runnable
//
// [Controller.Start] and [Controller.NeedLeaderElection] make it one, so that a program can move piece by piece: manager.Add(apps). The
// manager's caches are not used; all controllers of one [kates.Client] share its watches.
package controller
