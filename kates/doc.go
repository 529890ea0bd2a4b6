// Package kates is a client for programs that turn many Kubernetes kinds into one result: an
// ingress or mesh configuration, a policy bundle, a DNS zone, a schedule, an inventory. It is the
// one import that most of them need.
//
// Such a program declares its inputs as a struct and gets all of them at once:
//
//	type Snapshot struct {
//	    Services []*kates.Service
//	    Slices   []*kates.EndpointSlice
//	    Hosts    []map[string]any `kates:"hosts.getambassador.io"`
//	}
//
//	snapshots, err := kates.Watch[Snapshot](ctx, client)
//	if err != nil { ... }
//	for snap, err := range snapshots.All(ctx) {
//	    if err != nil { ... }
//	    rebuild(snap) // may take as long as it likes
//	}
//
// # Map
//
// By task:
//
//   - Connect: [NewClient], [NewClientFromRESTConfig], [NewClientFactory] for flags. An [Option]
//     configures a client. [Client.Reconnect] changes credentials and addresses while it runs,
//     [Client.ClusterUID] says which cluster it is. [Client.Close] ends everything.
//   - Watch: [Watch] for a struct whose fields say the kinds, [Client.WatchStruct] for a type that
//     is made at run time, [Client.Watch] for queries. [Query] selects and narrows: namespaces,
//     selectors, [Query].Where, Refs, Transform and Signal. A [WatchOption] sets the pace.
//     [Lookup] finds the objects that others refer to.
//   - Run: [Run] calls a function with everything, [RunEach] with one snapshot for each key (a
//     namespace, a tenant, a gateway: [Query].Key), and package controller reconciles the objects
//     of a kind with what they own. [LeaderElection], [Sharding], [WithBackoff], [WithTriggers],
//     [WithWorkers], [WithShutdownTimeout], [WithSignals], [Again]. A [Handle] changes the queries
//     of a run; a watch has [Snapshots.Replace].
//   - Read: [Client.Get] and [Client.List] ask the server. [GetCached] and [NewLister] read from a
//     watch that runs anyway. [Client.PodLogs] follows logs.
//   - Write: [Client.Create], [Client.Update], [Client.Patch], [Client.Apply], [Client.Upsert],
//     [Client.Delete], [Modify], and options such as [DryRun] and [IfUID]. For controllers
//     [SetStatus], [Client.SetConditions], [UnderFinalizer].
//   - Own: [Client.ApplyOwned] applies what one owner wants and prunes the rest. Owner references:
//     [SetControllerReference].
//   - Convert: [ParseManifests], [ConvertObject], [NewUnstructuredFromObject], [NewObject].
//   - See: [Client.Ready], [Client.Status], [Client.Sync], fields of []*[Delta] and [][Invalid].
//   - Test: package katestest has a client for unit tests, faults, and a detector of writes to
//     shared objects.
//   - Tune: [WithInterval], [WithDebounce], [WithRateLimit], [WithTransform], [Tuning],
//     [Query].MetadataOnly, and "How much is held" below.
//
// Options have one style. With… configures what lives: a client, a watch, a run. A bare name
// changes one call ([DryRun], [IfUID], [FieldManager]). A struct is an option with several fields
// ([Query], [LeaderElection], [Sharding], [Tuning]). An option that makes no sense is an error
// that says what does.
//
// # What a snapshot is
//
//   - Complete (G1). There is no snapshot before every query has its whole first list: all pages,
//     every kind, empty kinds too.
//   - The latest (G2). It has everything that the watches had delivered when it was asked for. A
//     slow reader stops nothing, and misses only outdated states.
//   - Bounded (G3). Memory depends on the number of objects, not on how often they change.
//     Changes coalesce; at most one signal waits.
//   - With the program's own writes (G4). Once a write method of the client has returned nil,
//     each later snapshot of that client shows its effect on the object, though the watch may be
//     seconds behind. An object that a write moves out of a query leaves the query.
//   - Monotonic (G5). Nothing that was shown is taken back, even if a list comes from a stale
//     cache. A cluster restored from a backup starts a new history, and that is logged.
//   - Free of residue (G6). Data held for own writes is dropped once the watches have caught up.
//   - Exactly described (G7). The deltas between two snapshots, applied to the first, give the
//     second.
//   - Isolated (G8). One object that does not decode, one kind that is forbidden or failing, or a
//     panic in a function of the program is reported, and the rest goes on.
//   - Deterministic (G9). Slices are ordered by namespace, then name.
//   - Shared and read-only (G10). What did not change is the same pointer as last time. Nobody
//     may write to the objects; katestest.DetectMutations finds writers.
//   - Without leaks (G11). Ending a context, or Close, ends everything that was started for it.
//
// The guarantees hold on a real API server, and on client-go's fake within its limits (package
// katestest).
//
// # How much is held
//
// A field of [Watch], or a [Lister], may have a Go type that the client's scheme knows:
// []*[Service]. (See [WithScheme] for the types of custom kinds.) Its objects are decoded
// directly from the wire, one at a time: from protobuf if the type and the server have it, else
// from JSON. An object is held once, in that form, without managed fields ([WithManagedFields]).
// Objects share equal strings, and equal maps of labels and quantities. Built-in kinds from
// protobuf share all that is equal: the pods of a Deployment have one copy of its containers. So
// an object must not be written to. All other fields, and all of [Client.Watch], hold untyped
// objects and convert those that change. Untyped objects share all parts that are equal: maps,
// slices and strings. Status tells which form it is. Several forms of one kind may be used; each
// then has a watch.
//
// A field of structs of your own, such as []*PodLite with the tag `kates:"pods"`, is decoded from
// the wire into the struct, by the rules of encoding/json. Nothing else of an object is held but
// what identifies it, and its labels if the query or a [Lookup] selects by them. What the struct
// has no field for is skipped on the wire. If the scheme has the kind's Go type, the names and
// types of the struct's fields are compared with it at Watch. All queries with that struct type
// and the same selection share a watch; another struct type has another watch. Where, Key and
// Signal are made of functions that take the struct or a metav1.Object, and those of Refs take the
// struct. With a function of another type, a Transform that does more than [DropManagedFields],
// AnyOf, and in a field with a role of a controller, whole untyped objects are held as above.
//
// A field of []*[PartialObjectMetadata], with a tag or a query for the kind, watches only
// metadata. [Query].MetadataOnly does so for [Client.Watch]. With [Keep] a query decodes and holds
// only the fields that it names ([Query].Projection). [Query].Transform drops what a
// program does not need, once, before anything is stored; [WithTransform] with
// [DropManagedFields] is a good default for untyped fields. An object for which a transform fails
// is left out, as [Invalid]. [Query].Signal selects the changes that wake the program
// ([GenerationChanged] and the like); the other changes are in the next snapshot all the same.
//
// # How it works
//
// One list+watch per distinct query serves everybody who asks for the same (package
// internal/engine/stream). The answers to the client's own writes are laid over what the watches show
// until these have caught up (package coherence). The client knows by itself whether such a write
// moves its object into a query or out of it: by labels, the built-in selectable fields, and those
// that custom kinds declare. Only what changed is converted and placed (package snapshot).
//
// # Where things are
//
// The files of this package are sorted by area: client (configuration, options, status), query
// (what is watched), watch (snapshots), write (single objects), object (forms of objects, owners,
// conditions), owned (sets of owned objects), run (loops and partitions), observe and health (what
// a client does, and whether it can), and compat (aliases of the Kubernetes API). They have types,
// documentation and calls: what these do is in packages under internal/client and internal/loops.
package kates
