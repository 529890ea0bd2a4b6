// Package accumulator makes one snapshot of many watches: lists and watches go in, coalesced
// changes of one snapshot come out.
//
// Start at [New], which makes an [Accumulator] of some queries on a [stream.Set], the streams of
// one client. [Partition] makes a snapshot for each key, [Open] reads one query without a
// snapshot. Package kates adds names, kinds and requests; this package knows of an API server
// only what a stream's source lists and watches. Package accumulator/stream describes the lists
// and watches, the forms of objects, and how a stream shows own writes.
//
//	streams ──dirty keys──▶ Accumulator ──Update──▶ struct
//
// A reader costs nothing while it is busy: a burst of events on one object is one dirty key, and
// an Update costs what has changed. After each Update, a goroutine makes the copies that the next
// snapshot will need, while the reader is busy. Only a reader that asks again at once waits for
// them.
//
// # Unions
//
// A query may consist of several streams of one kind, which may show the same object, and each of
// which may be late. Package coherence decides what the union shows: see rules U1 to U7 there. An
// object that left a stream stays as it was until all streams have reached a version at which its
// absence is certain. The accumulator asks the server on behalf of streams that stay late. The
// first snapshot waits until all streams have reached one version.
//
// # Partitions
//
// A program that has one output per tenant or per gateway takes its snapshot in [Partitions].
// [Query.Key] returns the keys of an object. Each key gets a struct of its own, with its objects
// and those that belong to every partition.
//
//	dirty keys ──▶ index (object ─▶ keys, converted once) ──▶ partitions: what changed in each
//	                                                             │ due: when the accumulator signals
//	                                                             ▼
//	                                           agenda ──▶ Next: a Turn ──▶ Done
//
// A key becomes due when one of its objects changes, and the change is worth a signal. An object
// that moves makes both keys due. A change that is not worth a signal ([Signal], quiet own
// writes) is in the key's next turn. Changes coalesce: an object that is again as the last turn
// showed it causes no turn. Next first takes what all streams have, so a turn is as new as it can
// be (G2, G4). Nothing runs while all workers are busy.
//
// A partition exists as long as an object has its key; objects that belong to every partition do
// not make one. After the last object has left a partition that was handed out, the partition is
// handed out once more, empty, until that turn ends without an error. Then it is forgotten. An
// invalid object keeps the keys that it had, so a partition never ends because an object does not
// decode.
//
// A turn costs what changed in its partition. One index per field holds the rows of all objects
// by name. A partition has tables of pointers into the index, and its turns bring them up to
// date. For a field without objects of its own it uses a table that all such partitions share. A
// change of an object that belongs to every partition is noted for each partition until its turn:
// this takes time and memory in the number of partitions.
//
// A field that is a [snapshot.Lookup] belongs to no partition, and every turn can read it. When a
// turn ends, its look-ups replace those of the turn before, also look-ups that found nothing. A
// change of an object makes those partitions due that have read it. A change during a turn is
// compared with what the turn has read when it ends.
//
// # References
//
// With [Query.Refs], only those objects are watched that objects of other queries name, by one
// stream each. A goroutine reads the names as soon as a stream brings an object. The object waits
// until each named object is known to be present or absent; until then the snapshot shows its
// last state, with what that named. So a snapshot never shows an object whose named objects are
// unknown. After the first snapshot, no object waits for what the server refuses, nor longer than
// ten seconds.
package accumulator
