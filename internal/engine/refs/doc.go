// Package refs runs queries with Refs: of such a query only those objects are watched that objects
// of other queries name.
//
// Start at [Prepare], which makes the queries of a reader. [Open] makes one more, and [Succeed]
// gives it the place of another one.
//
//	streams ──▶ source ──names──▶ followed ──▶ a stream for each name
//	              │
//	              └──a batch, once the named objects are known──▶ the reader's tables
//
// A [query.Running] is wrapped as a source if its objects name others. A query with Refs is a
// followed. It can be the Running of a source, too: names may lead to objects that name others. The
// order of takes goes by [Rank].
//
// The names are read as soon as a stream brings an object ([Naming]). The object waits until each
// named object is known to be present or absent. Until then the reader has its last state, with
// what that named. So no snapshot shows an object whose named objects are unknown. After the first
// snapshot, no object waits for what the server refuses, nor longer than [Patience].
//
// A query that is to take the place of a source has the names in its objects read ahead: see
// coming. [CanFollow] waits until they are known.
package refs
