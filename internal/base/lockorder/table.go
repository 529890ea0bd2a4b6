// Package lockorder has the one order in which the mutexes of this module are acquired, and checks
// it in tests.
//
// A mutex is a field of type [Mutex], whose type parameter says which lock of [Order] it is. In a
// plain build a Mutex is a sync.Mutex and [CallOut] is nothing. With the build tag lockorder every
// acquisition is held against the order: a goroutine may only acquire a lock that stands below all
// that it holds, and [CallOut] is refused if it holds any. A violation ends the process with the
// names of both locks and the stack, also where no other goroutine is in the way: a deadlock is
// found without having to happen.
//
// Turns (Collector.turn, upkeep.editing) are channels and have no rank: they are held for
// longer than a moment, and whoever waits for one holds no lock.
package lockorder

// The locks, as type parameters of [Mutex]. [Order] says what each is.
type (
	Fleet          struct{}
	FleetWatch     struct{}
	Targets        struct{}
	TargetWatch    struct{}
	FleetCluster   struct{}
	Control        struct{}
	ControllerRun  struct{}
	Shard          struct{}
	Replica        struct{}
	LeaseReports   struct{}
	Candidate      struct{}
	LeaseLock      struct{}
	Loop           struct{}
	Loops          struct{}
	LoopCalls      struct{}
	WatchSettings  struct{}
	RunHandle      struct{}
	TurnChanges    struct{}
	Converted      struct{}
	EventSink      struct{}
	Recollections  struct{}
	Marks          struct{}
	Entries        struct{}
	Scheduler      struct{}
	Tables         struct{}
	Indexes        struct{}
	Past           struct{}
	Union          struct{}
	References     struct{}
	Life           struct{}
	Roster         struct{}
	Pacer          struct{}
	Reads          struct{}
	StreamSet      struct{}
	Stream         struct{}
	Originals      struct{}
	Reflector      struct{}
	FreshReference struct{}
	Horizon        struct{}
	Resolver       struct{}
	Strings        struct{}
	Identities     struct{}
	Link           struct{}
	FakeMirrors    struct{}
	Connections    struct{}
	Sharing        struct{}
	Witnessed      struct{}
	Exhibits       struct{}
	StatusPage     struct{}
	PageHistory    struct{}
	PageRecent     struct{}
	PageRequests   struct{}
	Watchdog       struct{}
	Lines          struct{}
)

// Lock is a row of [Order].
type Lock struct {
	of any // the type parameter
	// Name is folder, type and field: "internal/engine/stream.Stream.mu".
	Name string
	// Guards says what the lock is for.
	Guards string
}

// Order is every mutex of the module, from the one that is acquired first to the one that is
// acquired last. The rank of a lock is its place. No two of one rank are held at a time.
var Order = []Lock{
	{Fleet{}, "fleet.Fleet.mu", "which clusters there are, by what the sources say"},
	{FleetWatch{}, "fleet.watching.mu", "which clusters a watch of a fleet has parts of"},
	{Targets{}, "fleet.Targets.mu", "which owners need which targets, and the watches of these"},
	{TargetWatch{}, "fleet.targetWatch.mu", "the targets of a kind in a cluster, their plan, and what is shown"},
	{FleetCluster{}, "fleet.Cluster.mu", "how a cluster is doing"},
	{Control{}, "controller.control.mu", "which run of a controller there is"},
	{ControllerRun{}, "controller.run.mu", "what is kept of each root"},
	{Shard{}, "internal/loops/keyed.Shard.mu", "the replica, and the keys that are owed a turn"},
	{Replica{}, "internal/loops/lease/shards.Replica.mu", "the protocol's state: members, keys, tenures"},
	{LeaseReports{}, "internal/loops/lease.Reports.mu", "which runs stand for a Lease, and which Leases were reached"},
	{Candidate{}, "internal/loops/lease.Candidate.mu", "the state of a candidate and its expiry timer"},
	{LeaseLock{}, "internal/loops/lease.lock.mu", "the last errors of a Lease's requests"},
	{Loop{}, "internal/loops/keyed.Loop.mu", "the attempts of keys that fail, the timers of those that asked for a turn"},
	{Loops{}, "internal/loops/keyed.Loops.mu", "which loops run"},
	{LoopCalls{}, "internal/loops/keyed.Calls.mu", "the calls of a loop that run, and how the others have ended"},
	{WatchSettings{}, "kates.lockedSettings.mu", "the settings of watches to come"},
	{RunHandle{}, "kates.Handle.mu", "what a handle controls"},
	{TurnChanges{}, "kates.turnReports.mu", "the changes of turns that failed"},
	{Converted{}, "kates.Lister.mu", "the objects that a lister has converted"},
	{EventSink{}, "kates/events.sink.mu", "whether the recorder has ended"},
	{Recollections{}, "internal/client/applied.Recollections.mu", "what lists of metadata have shown"},
	{Marks{}, "internal/client/applied.Marks.mu", "at which version an apply succeeded"},
	{Entries{}, "internal/client/applied.Entries.mu", "which fields of an object its applier owns"},
	{Scheduler{}, "internal/engine/partition.scheduler.mu", "the partitions, the agenda, who looked up what"},
	{Tables{}, "accumulator.Accumulator.tables", "the tables, for those without the reader's turn"},
	{Indexes{}, "internal/engine/partition.indexes.mu", "indexes and tables, for those without the reader's turn"},
	{Roster{}, "internal/engine/collect.roster.mu", "which queries there are"},
	{Life{}, "internal/engine/collect.life.mu", "the end of a collector, and what it stops"},
	{Union{}, "internal/engine/query.union.mu", "a query: its kind, and its streams"},
	{References{}, "internal/engine/refs.followed.mu", "a query with Refs: its kind, and the named objects"},
	{Pacer{}, "internal/engine/collect.pacer.mu", "when the next signal is due"},
	{Reads{}, "internal/engine/partition.reads.mu", "what a turn has looked up"},
	{Sharing{}, "internal/engine/partition.sharing.mu", "which share the queries are to bring"},
	{StreamSet{}, "internal/engine/streamset.Set.mu", "the streams, their use, the journal, the users"},
	{Stream{}, "internal/engine/stream.Stream.mu", "a store, its own writes, its listeners' dirty keys"},
	{Originals{}, "internal/engine/intake.originals.mu", "how many bytes a stream holds of objects that are left out"},
	{Reflector{}, "internal/engine/reflector.Reflector.mu", "how to end what is under way, to list again; the watch that was handed over"},
	{FreshReference{}, "internal/engine/refs.fresh.mu", "named objects whose streams have news"},
	{Horizon{}, "internal/loops/fence.Horizon.mu", "the versions that a piece of work has written"},
	{Resolver{}, "internal/client/kinds.Resolver.mu", "the latest reading of discovery"},
	{Strings{}, "internal/client/wire/intern.Table.mu", "strings and maps that objects share"},
	{Identities{}, "internal/loops/lease.identities.mu", "the identities that this process stands under"},
	{Past{}, "internal/engine/query.Past.mu", "how new what a reader has had is"},
	{Link{}, "internal/client/connection.Link.mu", "the former connections that requests may still use"},
	{FakeMirrors{}, "internal/client/fake.Server.mu", "the versions of what a fake has, and its watches"},
	{Connections{}, "internal/client/connection.Conns.mu", "open connections, requests and dials under way"},
	{Witnessed{}, "kates/katestest/internal/mutation.Watch.mu", "what a watch shows, for the mutation detector"},
	{Exhibits{}, "kates/katestest/internal/mutation.Detector.mu", "what was handed out, and who has written to it"},
	{StatusPage{}, "kates/page.Page.mu", "the clients and fleets that the page is about"},
	{PageHistory{}, "kates/page.history.mu", "the samples of the timelines"},
	{PageRecent{}, "kates/page.recent.mu", "the last snapshots"},
	{PageRequests{}, "kates/page.requests.mu", "how requests have ended"},
	{Watchdog{}, "internal/base/watchdog.Open.mu", "which functions of the user run"},
	{Lines{}, "internal/client/wire/ordered.Pool.mu", "the functions that wait for a helper, and what they hold"},
}
