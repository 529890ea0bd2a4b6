// Package coherence keeps a program's own writes visible until its watches show them.
//
// A watch is late: a write returns before the watch brings the object. A program that reads only
// its watches sees the past right after a write, and repeats the write. This package remembers the
// answers of the server. For each object the package says which is newer: the answer, or what the
// watch shows.
//
// The package is pure logic. The package does no I/O, starts no goroutine and has no lock: the
// owner of a [View] or a [Journal] has one. The time is an argument. Start at [View], the own
// writes of one stream. [Journal] is the client's side: the floor under each resource.
//
// # Rules
//
// Versions are resource versions. They compare only within one resource (KEP-5504). This package
// keeps rules 1, 2, 4 and 10, and the journal of rule 3. The owners of views keep the others
// (internal/engine/stream, internal/engine/warm, kates).
//
//  1. Position. The position of a view is the newest version that a live event, a bookmark or a
//     whole list has shown. A watch delivers in the order of versions. So everything up to the
//     position has been delivered, and what is not newer is old news. The initial events of a
//     streamed list come in the order of keys: they move the position when the list is whole.
//  2. Entry. A write that was answered with version V makes an entry. The entry is shown in place
//     of what the watch shows while position < V. The entry ends when position ≥ V, since the
//     watch's own object is V or newer then. Of two entries for one key the newer version counts,
//     in whichever order the answers came.
//  3. Floor. The journal keeps, for each resource, the newest version with which an own write was
//     answered. The floor outlives the views. Every list of a stream, also the first, is the newest
//     state at the time of its request. A list is refused if it is older than the floor was at the
//     time of the request, or older than the position.
//  4. Tombstone. A deletion that was answered with its version is an entry without an object. Other
//     answers have no version, or one that the watch shows as the object's own. In a view without
//     a selector, such an answer takes the version of the DELETED event of its UID, if the event
//     came while the write was under way. If the view still shows the UID, the entry is open: it
//     hides the name until that event, or until a newer event of another UID or a newer list
//     without this UID. In all other cases rule 6 applies.
//  5. Classifier. One function reads every answer. Gone is a DELETE answered by a Status, or by an
//     object without deletionTimestamp. Gone is also any object with a deletionTimestamp that no
//     finalizer and no grace period keeps any more. Other objects with a deletionTimestamp are
//     terminating, the rest is present. Dry runs, failed writes and writes without an answer make
//     no entry.
//  6. Settling. Some answers cannot be judged for a stream: only the server knows the fields of its
//     selector, the stream watches another version, the answer is about a subresource of another
//     kind, or rule 4 says so. Before such a write returns, the server is asked for the object as
//     the stream would show the object. The reply makes an entry at the version of the list that
//     brought it. If the answer does not tell at all what became of the object, the server is asked
//     once for all streams, without selectors; if it refuses that, each stream asks. If the server
//     cannot be asked, the write is unsettled: it is reported, and shown when the watch brings it.
//  7. Coverage. A write counts for every stream of the same stored resource, in whatever group and
//     version the stream watches.
//  8. Probe. After an error, a long silence or a refused list, a stream asks for the newest version
//     of the server before it goes on. If that version and the next list are both older than the
//     newer of position and floor, the cluster was restored from a backup: a new history begins at
//     the list, and everything of the old one is dropped. A list alone is no proof, and a version
//     that does not compare is no answer. If the watch was only silent and something waits, a list
//     ends the wait.
//  9. Echo. If the watch brings the version that is shown, nothing has changed, and the object
//     stays the very same pointer. A list may show that version with another content, after a
//     change of schema or conversion. Then the list's object takes the place, which is a change.
//  10. Last state. Some servers and proxies send a DELETED event with the object's last version, in
//     place of the deletion's. If UID and version are those of the stored object, the event is the
//     deletion of that object, at an unknown version: the object goes, and the position stays. The
//     event ends an open entry of that UID, and an entry that has this very state, and no other. An
//     answer that was on its way and has this very state makes no entry. Nor, in a stream without
//     a selector, does one that has the object at all: the answer is from before the deletion.
//
// # Why the guarantees follow
//
// Let a write of key k be answered with V, and let a stream of that resource be at position P.
//
// Own writes (G4). If P < V, there is an entry (2, 4 to 7), and the entry is read, unless the watch
// has shown a later deletion (10). If P ≥ V, the watch has delivered k at V or later (1). A stream
// that lists later gets a list at V or later (3). The write returns after its entries are made. An
// unsettled write (6) is the exception, and is reported.
//
// Monotonic (G5). The store moves forward: events are in order (1), lists are not older (3). An
// entry is newer than the position and than the entry before (2), and ends when the store has
// reached its version. An open entry ends by what is newer than the deletion (4). A new history (8)
// is the exception.
//
// No residue (G6). The position reaches V by an event, a bookmark, or the list after a silence (8).
// An open entry ends by its event, which must come since the view showed the object, or by a list.
//
// Exact deltas (G7). A reading changes when an entry is made. When the entry ends, the reading is
// the same pointer (9), or a newer object, which is a change. So a write and its echo are one
// change.
//
// # Deletions
//
// A DELETED event that comes before the answer needs no entry. A UID is deleted once, so event and
// answer are about one deletion, and the position has reached it. With a selector the event may be
// a move out of the selector, so the server is asked. A list without the object is no proof: a
// kind that is no longer served counts as an empty list. What a view keeps of deletions ends with
// the last write of the key, and is bounded: what is forgotten costs a request.
//
// An entry cannot hide one UID up to some later version. Another object can have had the name in
// between: the stream is at create(u1), the server at create(u2), and our deletion is of u2. To
// hide u2 alone would show u1, which is older than our deletion. The version of a later own update
// is no bound: an update that changes nothing is answered with the object's old version.
//
// A last state (10) is not an old event sent again: the stored version was brought before the
// deletion. A deletion with its own version is not taken for one: no object is stored at that
// version. An entry with this very state was asked for (6), so the deletion is newer. Any other
// entry is newer than the state in the event, or is of a later object of that name; a tombstone
// hides the name in any case. The position lags until the next event or bookmark, and what has to
// be new asks the server (8). No server is known that sends a move out of a selector with the
// stored version.
//
// # Limits
//
// Rule 8 finds a restore only while the new history is older than position or floor. If the new
// history has passed both, what differs up to the position is shown as it was, until the object
// changes or a list comes. Streams of one resource are not equally late: what a query shows of one
// object may be newer than what the query shows of another.
//
// Some aggregated API servers answer writes without a version. Such a write waits, in order, for an
// event with its content, which ends the writes before it, too, and at most until a deadline. That
// is exact for one writer and an unbroken watch, and heals within the deadline for several. Package
// internal/client/fake gives versions to the objects of client-go's fake.
//
// # Rules of warm starts
//
// A file holds the objects of a stream as of a position P. A program that starts again takes the
// file for a list if it is certain enough that the server's history still has P. Where one of these
// rules fails, the file is of no use.
//
//  1. W1 Present. After the stream has begun to take in own writes, the server is asked for its
//     newest version X. The file counts only when X is P, or when a watch from P has brought X or
//     a later version.
//  2. W2 Past. X is not older than P. Otherwise the server was restored.
//  3. W3 Witness. Before the server is asked for X, it is asked for some objects of the file, the
//     newest among them. A witness that the watch from P does not change must have the UID and the
//     version of the file, and at least one must. If the server tells the number of objects at X,
//     file and watch must have that number at X.
//  4. W4 Bound. The file is no older than a server keeps its history (FileMost of the engine).
//
// File and watch together are the state at a version ≥ X, and X is no older than any own write that
// the stream has not taken in. So they are what a list would be (3). Until then nothing is shown
// (G1), so nothing is taken back (G5). A restore at B < P stays unnoticed if the server has passed
// P since, the numbers agree or are not told, and each witness newer than B has changed again or
// has the same version in both histories. What differs stays as the file has it until the object
// changes or a list comes. W4 makes that rare.
package coherence
