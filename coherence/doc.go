// Package coherence keeps what a program wrote visible until its watches show it.
//
// A watch is late: a write returns before the watch brings the object written. A program that
// reads its watches right after a write sees the past, and repeats the write. This package
// remembers the answers of the writes. For each object it says which is newer: the answer, or what
// the watch shows.
//
// The package is pure logic. It does no I/O, starts no goroutine and reads no clock: the time is
// an argument. It has no locks: the owner of a [View] or a [Journal] guards it. It knows nothing
// of clients, requests or streams, so all of it can be tested exhaustively.
//
// Start at [View]: the own writes of one stream. [Journal] is the client's side: the floor under
// each resource.
//
// # Rules
//
// Versions are resource versions (KEP-5504), compared within one resource only. Rules 1, 2, 4, 9
// and 10 are kept here. Rules 3 and 5 to 8 are kept by the owners of views (packages
// internal/engine/stream and kates), and stated here because the argument needs them.
//
//  1. Position. A view's position is the newest version that a live event, a bookmark or a whole
//     list has shown. A watch delivers in the order of versions. So everything up to the position
//     has been delivered, and nothing older can come. The initial events of a streamed list come
//     in the order of keys. They are a list, and move the position only when the list is whole.
//  2. Entry. A write that was answered with version V makes an entry. The entry is shown in place
//     of what the watch shows while position < V, and ends when position ≥ V. From then on the
//     watch's own object is V or newer. A foreign write that raced with ours is decided by the
//     same comparison, and so is a write that changed nothing (its V is old). Of two entries for
//     one key the newer version counts, in whichever order the answers arrived.
//  3. Floor. The journal keeps the newest version of each resource with which an own write was
//     answered. Every list of a stream, also its first, is consistent: the newest state at the
//     time of the request. A list is refused if it is older than the floor or the position were at
//     that time. The floor outlives the views. For an object that no stream covers, nothing else
//     is kept.
//  4. Tombstone. A deletion that was answered with its version is an entry without an object.
//     Some deletions are answered without it. In a stream without a selector, a DELETED event
//     cannot be a move out of the selector: it tells the version at which its UID was deleted. If
//     the event comes before the answer, the answer counts as one of that version. The position
//     has reached it, so there is nothing to hide, and nothing to ask. So while a write of a key
//     is under way, the view keeps which UIDs of the key were deleted, and when. If it has not
//     seen the deletion, but the stream has no selector and shows the very object (by UID) that
//     was deleted, the entry hides the name. It does so until the DELETED event of that UID, or
//     until a list or an event that is newer than the object and does not have it. Everything
//     delivered before that is older than the deletion, whatever its UID. In all other cases rule
//     6 applies: the stream has a selector, or it neither shows the object nor has shown its
//     deletion. Then the object may have been deleted and created again before the answer came.
//     Rule 6 applies as well to an answer whose version, as the watch shows, is the object's own:
//     it is not the deletion's.
//  5. Classifier. One function reads every answer. Gone: a DELETE answered by a Status, or by an
//     object without deletionTimestamp; any answer with a deletionTimestamp and neither finalizers
//     nor a grace period. Else terminating, if there is a deletionTimestamp; else present. Dry
//     runs, failed writes and writes whose outcome is unknown make no entry.
//  6. Settling. Some answers cannot be judged for a stream: its selector is on fields that only
//     the server knows, it watches another version of the stored resource, a subresource is of
//     another kind, or rule 4 says so. Then, before the write returns, the server is asked for the
//     object as the stream would show it, no older than the write. Its answer is the truth at the
//     list's version, and makes an entry of that version. An answer that does not tell what became
//     of the object at all (nobody can read it, or it is about a subresource of another kind) is
//     replaced first: the server is asked once, without selectors, and what it says takes the
//     place of the answer. If it refuses that, each stream asks for itself. If the server cannot
//     be asked, the write is unsettled: it is reported, and shown when the watch brings it.
//  7. Coverage. A write counts for every stream of the same stored resource, in whatever group and
//     version the stream watches it.
//  8. Probe. A stream whose watch ended with an error, or was silent for longer than a bookmark
//     period, asks for the server's newest version before it goes on. So does one whose list was
//     older than the position or the floor, before it lists again. If the newest version is older
//     than those, and the list that follows is too, the cluster was restored from a backup. A list
//     alone, however often it comes, is no proof of that: it may be a bad answer. A version that
//     does not compare says nothing, and is no answer at all. After a restore a new history starts
//     at the list, and the entries, tombstones, seen deletions, unsettled writes and the position
//     of the old one are dropped. If the watch was only silent, and something waits for it, a list
//     ends the wait. This assumes that the new history is still older than the position or the
//     floor when the stream asks: versions alone tell two histories apart. If it has passed both,
//     the watch goes on in it. What differs up to the position is then shown as it was, until the
//     object changes or a list comes.
//  9. Echo. When the watch brings the version that is already shown, nothing has changed, and the
//     object shown stays the very same one. A list may show that version with another content: a
//     schema has gained a default, a conversion has changed, the server was upgraded. The list is
//     what the server shows now, so its object takes the place of the stored one, and that is a
//     change. Only lists are compared, and only where versions are equal.
//  10. Last state. A DELETED event has the version of the deletion. Some servers and proxies send
//     the object's last version in its place. So a DELETED event that has the UID and the version
//     of the stored object is no old news (rule 1): it is the deletion of that object, at a version
//     that is not known. The stored object goes, and the position stays. The event ends an open
//     deletion of that UID (rule 4), and an entry that has this very state, as an answer by rule 6
//     may, whatever its version. It ends no other entry. It does not tell a write that is under way
//     the version of the deletion, so rule 6 applies to that. But an answer that has this very
//     state makes no entry, nor, in a stream without a selector, does any that has the object: it
//     is from before the deletion.
//
// # Why the guarantees follow
//
// Let a write of key k be answered with version V, and let some stream of k's resource be at
// position P.
//
// Own writes (G4). If P < V there is an entry (2; 4 to 7 give it its content), and it is read. If
// P ≥ V, the watch has delivered k's state at V or later (1), and that is read. A stream that
// starts or lists afterwards gets a list that is V or newer (3), so the second case holds. In no
// case is anything read that is older than V, and the write returns only after its entries are
// made.
//
// Monotonic (G5). What is read for k is the entry or the stored object. The store moves forward:
// events come in order (1), and a list is at the position or later (3). An entry is made only if
// it is newer than the position and than the entry before it (2). So it is newer than both things
// that could have been read before. It ends only when the store has reached its version. A
// tombstone without version ends only by what is newer than the deletion (4). Hence no reading is
// older than one before it, and no deleted UID is read again. The one exception is a new history
// (8).
//
// No residue (G6). An entry at V ends when the position reaches V: by an event, by a bookmark, or,
// where neither comes, by the list after a silence (8), which is V or newer (3). A tombstone
// without version ends by its own DELETED event, which must come, since the object was in the
// stream's query; or by a list. Create and delete before the watch has seen either are two entries
// for one key, of which the newer counts (2); both end the same way. So once the server is quiet
// nothing is held, and the store is read, which the watch keeps equal to the server's list.
//
// Exact deltas (G7). An entry changes a reading when it is made. When it ends, the reading is the
// stored object: the same version, and then the same pointer (9), or a newer one, which is a
// change. So is the same version with another content, which only a list brings. So a write and
// its echo are one change, and a delta that compares readings reports it once.
//
// # Why an event that overtakes the answer to a deletion is enough
//
// The answer says that a UID is gone, and the event says since which version: V. A UID is deleted
// once, so both are about one deletion, whoever else writes the name, and however many writes of
// it are under way. The event has moved the position to V (1), hence P ≥ V, and the second case of
// G4 holds. What is read is nothing, a newer object of that name, or a pending write of ours that
// is newer than P. None of them is to be hidden. An entry that the deleted object still had was
// older than V, and has ended (2). G5 holds as after any event: nothing older than P is accepted
// (1, 3). And since no entry is made, none remains (G6).
//
// It has to be certain that the event is a deletion, and of this UID. So an event of another UID
// does not count. Nor does one in a stream with a selector: it may be a move out of the selector,
// which was followed by a move in. A list that lacks a stored object would be as certain. But a
// kind that is no longer served counts as an empty list, which is no deletion; and lists are so
// rare that the server may as well be asked. In a new history (8) a UID may exist again: the seen
// deletions are dropped with the old history.
//
// What is kept for a key is dropped when the last write of the key ends. A write that ends earlier
// takes nothing from the others. The memory is bounded for each key; what is forgotten costs a
// request, and nothing else.
//
// # Why a deletion with the version of a stored object is one
//
// An event with a deletion's own version V cannot be taken for it. At V the object of that UID is
// not in the stream's query, so no list and no event has brought it with version V, and it is not
// stored with V. Nor is it old news that is sent again: the object's own event, or a list, has
// brought the stored version, and the deletion came after that.
//
// Own writes (G4). Let an entry of ours be at V, so that position < V. If it has the stored state,
// the server was asked for it (6), and had it at V: the deletion is newer. Else, if it is of the
// same UID, it is newer than the state that the event has. If it is of another UID, it is a later
// object of that name. A tombstone hides the name in any case. So no entry but these two ends, and
// what is read of the key is our write, until the position reaches V. Where no
// entry is, nothing is read, and every own write of the object that has returned is one that the
// watch has passed: the deletion is newer.
//
// Monotonic (G5). The object does not come back. Its own event is before its deletion, and the
// watch delivers in order (1). A list is consistent as of its request (3), which is after the
// event. An answer that was on its way when the event came makes no entry.
//
// No residue (G6). The position lags behind the deletion until the next event or bookmark. What
// has to be as new as the stream, as a Sync or a query that takes another's place, asks the server
// (8).
//
// This assumes that a DELETED event with the stored version is a deletion also in a stream with a
// selector. A move out of a selector is sent as DELETED, too, with the version of the move: the
// API server does this, and no server is known that sends the stored version. If one did, an own
// write that moves the object out of the selector would end by the event as by its deletion, which
// is right: the stream does not show the object in either case.
//
// # Why a UID and a bound are not enough for a deletion
//
// It seems enough to hide the deleted UID until some version that the server gave after the
// deletion. It is not. Another object can have had the name in between: the stream is at
// create(u1), the server at delete(u1), create(u2), and ours is delete(u2). To hide u2 alone would
// show u1, which is older than our deletion. Nor is the version of a later own update a bound: an
// update that changes nothing is answered with the version that the object had before, which may
// be older than the deletion.
//
// # Several streams
//
// An object is in exactly one stream of a query, for all time (rules D1 to D3, packages
// internal/engine/query and internal/engine/stream). So nothing has to decide which of several
// streams is right, and what holds for a stream holds for a query. Several streams of one resource
// are each as late as they are. The state that a query shows of one object may be newer than that
// of another.
//
// # Objects without usable versions
//
// Some aggregated API servers answer writes without a version. Such a write is judged by content:
// it waits, in order, for an event with its content. An event that matches ends all entries up to
// its own. A write whose event never comes, or came before the answer, ends at a deadline. That is
// exact for one writer and an unbroken watch. With several writers it heals within the deadline.
// client-go's fake has versions by the time that this package sees it (internal/client/fake).
//
// # Rules of warm starts
//
// A program has kept, in a file, the objects of a stream as of a position P. It starts again, and
// may take the file for a list, if it is certain enough that the server's history still has P, and
// if it brings the file up to the present. The rules:
//
//  1. W1 Present. At this start, after the stream has begun to take in own writes, the server is
//     asked for its newest version X: a consistent list of one object. The file counts only after
//     a watch from P has brought an event or a bookmark at X or later. Then it is a list at that
//     version, with all that rule 3 says of lists.
//  2. W2 Past. If X is older than P, the server has lost P: it was restored. The file is of no use.
//  3. W3 Witness. Some objects of the file, the newest among them, are asked for before X is. An
//     object that the watch from P has not changed was, at each moment between P and the end of the
//     watch, as the file has it. So the server must have answered with that UID and that version.
//     If it has not, file and server have different histories, and the file is of no use. The same
//     holds if the server says how many objects there are at X, and file and watch have another
//     number at that version. At least one witness must have answered so.
//  4. W4 Bound. A file older than a server keeps its history is of no use: see FileMost in package
//     stream.
//
// Why nothing shown is wrong. Let the histories be the same up to P. The file is the state at P,
// and a watch from P brings all that came after it, in order: so file and watch together are the
// state at the version R that the watch has reached. R is X or later (W1), and X is no older than
// the answer to any own write that the stream has not taken in as an entry. So it is what a list
// would have been (rule 3), and all arguments about lists hold. Until then nothing is shown, so G1
// holds, and there is nothing that could be taken back (G5).
//
// What is certain of the histories. After a restore from a backup at B < P, the server's versions
// go on from B. As long as they are below P, W2 finds out. When they have passed P, W3 finds out
// if an object of the file that is a witness was made or changed after B, or if the numbers
// differ. A witness that is confirmed proves that B is not older than its version. What nobody
// finds out: B is younger than the newest version in the file, or the witnesses that are younger
// have changed again; and between B and P the old history has deleted objects, and the new one has
// changed others or made as many; or both have written one object at the very same version. What
// differs then stays as the file has it, until the object changes or the kind is listed: as with a
// watch that goes on in a new history (rule 8). W4 makes it rare: the restored server has to write
// as much as the old one did between B and P before the file is too old.
package coherence
