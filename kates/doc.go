// Package kates is a client for programs that turn many Kubernetes kinds into one
// result: an ingress or mesh configuration, a policy bundle, a DNS zone, a schedule,
// an inventory. It is the one import that most of them need.
//
// Such a program declares what it needs as a struct and gets it whole:
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
// One that has an output per something, per namespace, tenant or gateway, gets a snapshot for each: [RunEach], and [Query].Key, which says what
// belongs to whom. One that reconciles the objects of a kind, with what they own, finds that in package controller, which stands on this one.
//
// Start with [NewClient] and [Watch]; [Client.Watch] is the same without a type that
// says the kinds. [Client] also reads and writes single objects, of any kind and form;
// [Modify] is read-modify-write.
// Package katestest has a client for unit tests.
//
// # What a snapshot is
//
//   - Complete (G1). There is none before every query has its whole first list: all
//     pages, every kind, empty kinds too.
//   - The latest (G2). It has everything that the watches had delivered when it was asked
//     for. A slow reader stops nothing, and misses nothing but what is outdated.
//   - Bounded (G3). What is held depends on how many objects there are, not on how
//     often they change. Changes coalesce; one signal waits at most.
//   - With the program's own writes (G4). Once a write method of the client has
//     returned nil, each later snapshot of that client shows its effect on the object,
//     though the watch may be seconds behind; an object that a write moves out of a query is gone from it.
//   - Monotonic (G5). Nothing that was shown is taken back, whatever cache a list was
//     served from. A cluster restored from a backup starts anew, and that is logged.
//   - Free of residue (G6). What is held for writes goes once the watches have caught up.
//   - Exactly described (G7). The deltas between two snapshots, applied to the first, give the second.
//   - Isolated (G8). One object that does not decode, one kind that is forbidden or failing, a
//     panic in a function of the program: it is reported, and the rest goes on.
//   - Deterministic (G9). Slices are in order of namespace, then name.
//   - Shared and read-only (G10). What did not change is the same pointer as last
//     time. Nobody may write to the objects; katestest.DetectMutations finds who does.
//   - Without leaks (G11). Ending a context, or Close, ends everything that was started for it.
//
// They hold on a real API server. On client-go's fake they hold for one writer, as far as
// that fake goes (package katestest).
//
// # How much is held
//
// A field of [Watch], or a [Reader], whose Go type the client's scheme knows ([]*[Service]; see [WithScheme] for the types of custom
// kinds) is decoded straight from the wire: from protobuf where the type and the server have it, else from JSON, one object at a
// time. It is held once, in that form, without managed fields ([WithManagedFields]), and shares strings, and maps of labels and
// quantities, with its like. Fields that do not say such a type, and all of [Client.Watch], hold untyped objects, and convert what
// has changed. Status says which it is; both may be asked of one kind, at the price of a watch each.
//
// A field of []*[PartialObjectMetadata] (with a tag or a query that says the kind) watches metadata and
// nothing else; [Query].MetadataOnly does so for [Client.Watch]. [Query].Transform drops, once and before anything is
// stored, what a program does not need; [WithTransform] with [DropManagedFields] is a good default for untyped fields. [Query].Signal
// says which changes are worth waking up for ([GenerationChanged] and the like); the others are in
// the next snapshot all the same. A transform that fails on an object leaves that one out, as [Invalid].
//
// # How it works
//
// One list+watch per distinct query serves everybody who asks for the same (package
// accumulator). The answers of the client's own writes are laid over what the watches
// show until these have caught up (package coherence). Whether such a write moves its object into a query or out
// of it, the client knows by itself for labels, the built-in selectable fields, and those that custom kinds declare. Only what changed is converted
// and placed (package snapshot).
package kates
