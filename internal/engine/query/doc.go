// Package query runs queries. A query makes one set of objects of one stream or several, and hands
// the changes to one reader, batch by batch.
//
// Start at [Query], which says which objects are wanted, and at [Running], a query that runs.
// [FindKind] finds its kind, and [New] makes one. [Host] is what runs them: package collect. A
// query decides neither when a reader hears of changes nor what a snapshot looks like.
//
//	streams ──dirty keys──▶ Running ──Take──▶ the reader's tables
//
// The Running of this package runs on streams over namespaces and names, one or several. No two of
// them have one object: see boxes.go. Package refs has those of queries whose objects are named,
// or name others.
//
// # The life of a query
//
//	seeking ──missing──▶ absent         seeking: its kind is not known
//	   │                   │            absent:  there is certainly nothing to watch
//	   └──────served───────┤            filling: it has streams, and no reader has taken a batch
//	                       ▼            shown:   a reader has taken one
//	          shown ◀─taken─ filling
//	            └──untaken──▶           closed:  it has left its streams, and keeps what it knew
//
// # What the reader has
//
// A query does not remember which objects it has handed out. The reader has them, in its tables. A
// batch says of which names it has all objects ([Batch.Gone]): what the reader has under such a
// name, and the batch lacks, is gone.
//
// # Several streams
//
// A batch of several streams has what their batches have. Where one of them tells everything anew,
// the batch has all objects of that stream. Where one has given up own writes, what the reader has
// of it stays until it has listed. Where the selected namespaces change, all streams tell
// everything, and the batch has all objects.
//
// # Changes while it runs
//
// The streams of a union are a set that never changes. If its kind is served in another way, a
// second set takes over, as a whole, in the reader's turn. A query that is replaced is closed, and
// another one has its place, also in the reader's turn. In both cases the streams that come have
// their whole first lists, and have reached the position of what was shown: so nothing is taken
// back. One function says which streams are behind, and the server is asked on their behalf
// (late.go). The next batch has all objects. If the kind is another stored resource, versions do
// not compare.
//
// [CanFollow] says whether a query can take the place of another one. The collector says when: it
// switches queries that were replaced together in one take. The two switches are not one: nobody
// above a query hears that its kind is served in another way, and a query without a reader
// switches by itself.
package query
