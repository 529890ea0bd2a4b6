// Package coherence keeps what a program wrote visible until its watches show it.
//
// A watch is late by nature: a write returns before the watch of the object
// written brings it. A program that reads its watches right after a write sees
// the past, and repeats the write. This package remembers the answers of the
// writes and says, for each object, whether the answer or what the watch shows is
// the newer truth.
//
// It is pure logic. It does no I/O, starts no goroutine and reads no clock: time
// comes in as an argument. It has no locks: whoever owns a [View] or a [Journal]
// guards it. It knows nothing of clients, requests or streams, so all of it can be
// tested to exhaustion.
//
// Start at [View]: one watch's side of the story. [Journal] is the client's side:
// the floor under each resource, and the order in which writes began and ended.
//
// # Rules
//
// Versions are resource versions (KEP-5504), compared within one resource only.
//
//  1. Position. A view's position is the newest version that a live event, a
//     bookmark or a whole list has shown. A watch delivers in the order of versions,
//     so everything up to the position has been delivered: nothing older can come.
//  2. Entry. A write that was answered with version V makes an entry. It is shown in
//     place of what the watch shows while position < V, and ends when position ≥ V.
//     From there on the watch's own object is V or newer. A foreign write that raced
//     ours is decided by the same comparison, and so is a write that changed nothing
//     (its V is old). Of two entries for one key the newer version counts, in
//     whichever order the answers came back.
//  3. Floor. The journal keeps the newest version of each resource that an own write
//     was answered with. A stream that starts or relists asks for no older than it,
//     so a list never brings back the state before the write. The floor outlives the
//     views: it is all that is kept for an object that no stream covers.
//  4. Tombstone. A delete that was answered without a version hides the object's UID,
//     not its name: the name may be taken again. It ends at a bound: a version that
//     the server certainly gave after the delete. Such is the version of an object
//     created, or of a list made, by a request that began after the delete returned
//     ([Record.Fresh]). The version of an update is not: an update that changes nothing
//     is answered with the version the object had all along, which may be older than
//     the deletion. A DELETED event is not either: it may be an earlier move out of
//     the selector, with the way back in still to come.
//  5. Echo. When the watch brings the version that is already shown, nothing has
//     changed, and the object shown stays the very same one.
//  6. Reset. A restored cluster starts a new history: entries, tombstones and position
//     of the old one mean nothing in it, and are dropped.
//
// # Objects without usable versions
//
// client-go's fakes, and some aggregated servers, give objects no version, or one
// that does not change. There a view goes by content: each own write waits, in order,
// for an event with its content. An event that matches ends all entries up to its own.
// One that never comes ends its entry at a deadline. That is exact for one writer and
// an unbroken watch; with several writers it heals within the deadline.
package coherence
