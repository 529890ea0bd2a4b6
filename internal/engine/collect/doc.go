// Package collect runs queries for one reader: it says when there is something new, and takes it
// from all queries together.
//
// Start at [New], which makes a [Collector] for a [Reader]. The readers are
// accumulator.Accumulator, lister.Reader and partition.Partitions. A collector holds no objects:
// what the reader has of each query is its own, the S of [Field].
//
//	queries ──wake──▶ pacer ──▶ Changed ──▶ the reader: Enter, Take, Deliver, Leave
//	   ▲  ▲                                                      │
//	   │  └────────────── a batch of each query ─────────────────┘
//	   └─ manager: late streams, unknown kinds
//	      follower: names in objects
//
// # Signals
//
// The first signal comes when every query has its whole first list (G1). After that, a change is
// signalled at once if there was no signal for an interval, and else when the interval is over
// ([Pace]). Changes that are not worth a signal wait for the next take.
//
// # Takes
//
// One goroutine at a time has the reader's turn, from Enter to Leave. [Collector.Take] takes a
// batch of each query. Queries whose objects name others come before those that are named, so one
// take has both. If a query cannot give its first batch after all, the first batches of the others
// are taken back: a first snapshot has all queries or none. The reader then calls
// [Collector.Deliver].
//
// # Changes while it runs
//
// Queries that one call adds or replaces are one change. They run beside the old ones, and take
// effect in one take, when all of them can be shown ([Collector.Advance]). Until then snapshots go
// on with the old ones. A call for a query that waits already joins the changes. Before the first
// snapshot is complete, nothing was shown, so changes take effect at once. Each makes another
// generation: a reader computes anew what depends on the list of queries.
//
// # Goroutines
//
// The manager asks the server on behalf of streams that objects wait for, lets streams leave that
// are no longer wanted, and looks for kinds that are unknown or no longer served as before. The
// follower runs only if objects of a query name others. It reads the names as objects come, so
// that the named objects are watched before the reader takes them. Both end with the collector,
// and [Collector.Close] waits for them, as for all that [Collector.Go] has started.
package collect
