// Package query runs queries. A query makes one set of objects of one stream or several, and hands
// the changes to one reader, batch by batch.
//
// Start at [Query], which says which objects are wanted, and at [Running], a query that runs.
// [Prepare] makes the queries of a reader, [Open] makes one more. [Host] is what runs them:
// package collect. A query decides neither when a reader hears of changes nor what a snapshot
// looks like.
//
//	streams ──dirty keys──▶ Running ──Take──▶ the reader's tables
//	                           └─── Shown ────────▲ what has it been handed?
//
// Running has three implementations:
//
//   - A union runs on streams over namespaces and names, one or several. No two of them have one
//     object: see boxes.go.
//   - References are the objects that others name. Each has a stream.
//   - A source is one of these whose objects name those of others. It wraps that.
//
// # What the reader has
//
// A query does not remember which objects it has handed out. Each reader has them anyway, in its
// tables, so a query asks for them ([Shown]), in the reader's turn. A second map would take memory
// for each object. A source answers for the query that it wraps, since it holds back some of what
// that query has handed out.
//
// # Several streams
//
// A batch of several streams has what their batches have. Where one of them tells everything anew,
// what the reader has of that stream, and the batch lacks, is gone. Where one has given up own
// writes, what the reader has of it stays until it has listed. Where the selected namespaces change,
// all streams tell everything, and the batch has all objects.
//
// # Changes while it runs
//
// A query is replaced by another union that runs beside it, its successor. The reader has the old
// one until the switch, which happens in its turn; then one batch has all objects of the new one.
// The switch waits until each stream of the successor has its whole first list, and has reached
// the position of what was shown: so nothing is taken back. It also waits until all that its
// objects name is known. The collector says when: it switches queries that were replaced together
// in one take.
//
// A kind that is served in another way gives a union other streams. The old ones leave when each
// new one has its whole first list, and has reached the position of what was shown. If the kind is
// another stored resource, versions do not compare.
//
// # References
//
// With [Query.Refs], only those objects are watched that objects of other queries name, by one
// stream each. The names are read as soon as a stream brings an object ([Naming]). The object
// waits until each named object is known to be present or absent; until then the reader has its
// last state, with what that named. So no snapshot shows an object whose named objects are
// unknown. After the first snapshot, no object waits for what the server refuses, nor longer than
// [Patience].
package query
