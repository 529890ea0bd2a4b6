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
// the floor under each resource.
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
//  4. Open end. Some deletions are answered without their version. Where the stream has
//     no selector, and shows the very object (by UID) that was deleted, the entry
//     hides the name until the DELETED event of that UID, which cannot be a move out
//     of a selector, or until a list, or an event, that is newer than the object and
//     does not have it. Everything delivered before that is older than the deletion,
//     whatever its UID.
//  5. Asking. Where the answer cannot be judged, the server is asked for the object as the
//     stream would show it, no older than the write, before the write returns. The answer is the
//     truth as of the list's version, and makes an entry of that version. So it is for
//     a deletion without a version where rule 4 does not apply: the stream has a
//     selector, or does not show the object, which may have been deleted and made again
//     before the answer came.
//  6. Echo. When the watch brings the version that is already shown, nothing has
//     changed, and the object shown stays the very same one.
//  7. Reset. A restored cluster starts a new history: entries, tombstones and position
//     of the old one mean nothing in it, and are dropped.
//
// # Why a UID and a bound are not enough for a deletion
//
// It seems enough to hide the UID that was deleted until some version that the server
// gave after the deletion. It is not. A name can have had another owner in between: the
// stream is at create(u1), the server at delete(u1), create(u2), and ours is
// delete(u2). Hiding u2 alone would show u1, which is older than our deletion. Nor is
// the version of a later own update a bound: an update that changes nothing is answered
// with the version that the object had all along, which may be older than the deletion.
//
// # Objects without usable versions
//
// client-go's fakes, and some aggregated servers, give objects no version, or one
// that does not change. There a view goes by content: each own write waits, in order,
// for an event with its content. An event that matches ends all entries up to its own.
// One that never comes ends its entry at a deadline. That is exact for one writer and
// an unbroken watch; with several writers it heals within the deadline.
package coherence
