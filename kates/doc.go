// Package kates is a client for programs that turn many Kubernetes kinds into one result: an
// ingress or mesh configuration, a policy bundle, a DNS zone, a schedule, an inventory. It is the
// one import that most of them need.
//
// # Map
//
//   - Connect: [NewClient], [NewClientFromRESTConfig]. An [Option] configures the client, and
//     [Client.Close] ends everything. [Client.Reconnect] changes credentials and addresses while
//     it runs, and [Client.ClusterUID] says which cluster it is.
//   - Watch: [Watch] for a struct whose fields say the kinds, [Client.WatchStruct] for a struct
//     type that is made at run time, [Client.Watch] for queries alone.
//   - Select: a [Query] has namespaces, selectors and functions ([WhereOf], [KeyOf], [SignalOf],
//     [TransformOf]). [RefsOf] and [Lookup] are for objects that others name.
//   - Set the pace: a [WatchOption] such as [WithInterval], [WithDebounce], [WithQuietOwnWrites].
//   - Change queries: [Snapshots.Replace] while a watch runs, a [Handle] while a loop runs.
//   - Run a loop: [Run] calls a function with everything, [RunEach] with the objects of one key (a
//     namespace, a tenant, a gateway), and package controller with one object and what it owns.
//   - Control a loop: [WithTriggers], [WithWorkers], [WithBackoff], [Again], [Permanent],
//     [WithSignals], [WithShutdownTimeout].
//   - Share the work among replicas: [LeaderElection], [Sharding].
//   - Read: [Client.Get] and [Client.List] ask the server. [GetCached] and [NewLister] read from a
//     watch that runs anyway. [Client.PodLogs] follows logs. [Client.Mapping] finds a kind.
//   - Write: [Client.Create], [Client.Update], [Client.Patch], [Client.Apply], [Client.Upsert],
//     [Client.Delete], [Modify], and a [WriteOption] such as [DryRun] and [IfUID].
//   - Write as a controller: [ModifyStatus], [Client.SetConditions], [UnderFinalizer], and package
//     events.
//   - Own: [Client.ApplyOwned] applies what one owner wants and prunes the rest.
//     [SetControllerReference] makes an owner reference.
//   - Convert: [ParseManifests], [NewObjectFromUnstructured], [NewUnstructuredFromObject],
//     [InScheme]. [StatusOf] says how far an object is.
//   - See: [Client.Ready], [Client.Readyz], [Client.Healthz], [Client.Status], [Client.Sync], and
//     fields of []*[Delta] and [][Invalid]. [WithObserver] is for metrics (module
//     kates/prometheus), traces (module kates/otel) and a status page (package page).
//   - Hold less: [PartialObjectMetadata], [Keep], [WithTransform], and "What is held" below.
//   - Deploy: [Rules] makes the RBAC roles of a program.
//   - Tune: [Tuning], [WithRateLimit], [WithMaxObjects], [WithWarmStart].
//   - Test: package katestest has servers and clients for tests, faults, and a detector of writes
//     to shared objects.
//   - Work with many clusters: package fleet.
//   - Make results at the cost of what changed: package derive.
//
// docs/guide.md is a tutorial, and docs/topics.md has each topic with an example.
//
// # A program
//
// A program declares its inputs as a struct and gets all of them at once:
//
//	type Snapshot struct {
//	    Services []*corev1.Service
//	    Slices   []*discoveryv1.EndpointSlice
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
// Options have one style. With… configures what lives: a client, a watch, a run. A bare name
// changes one call ([DryRun], [IfUID], [FieldManager]). A struct is an option with several fields
// ([Query], [LeaderElection], [Sharding], [Tuning]). An option that makes no sense is an error
// that says what does. Names whose documentation begins with "For Emissary's code:" are for
// programs that move here from Emissary's kates. It says what new code uses.
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
// # What is held
//
// The form of a snapshot's field says what is held of an object. Queries with the same selection
// and the same form share one list and watch.
//
//   - A Go type that the client's scheme knows ([WithScheme]): the whole object, without managed
//     fields ([WithManagedFields]), decoded directly from the wire.
//   - A struct of your own: the fields that the struct has, and what identifies the object.
//   - [PartialObjectMetadata], or [Query].MetadataOnly: the metadata. The server sends no more.
//   - All other fields, and all of [Client.Watch]: the whole object, untyped. It is converted when
//     it has changed.
//
// Objects share what is equal in them. docs/topics.md ("Less of everything") has the details of
// each form, and what it costs.
//
// # How it works
//
// The answers to the client's own writes are laid over what the watches show until these have
// caught up (package coherence). The client knows by itself whether a write moves its object into
// a query or out of it: by labels, the built-in selectable fields, and those that custom kinds
// declare. Only what changed is converted and placed (package snapshot). docs/ARCHITECTURE.md says
// where everything is.
package kates
