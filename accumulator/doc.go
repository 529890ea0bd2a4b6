// Package accumulator brings watches together: list+watches in, coalesced changes
// of one snapshot out.
//
// Start at [stream.Set], the list+watches of one client, and [stream.Set.New], which makes
// an [Accumulator] of some queries. Package kates puts names, kinds and requests to
// it; this package knows of an API server only what a [Source] lists and watches.
//
//	Source ─▶ feed ─▶ stream (store + coherence.View) ─▶ dirty keys ─▶ Accumulator ─▶ struct
//	own writes ────────────────▲
//
// A stream is one list+watch, shared by everybody who asks for the same. It
// keeps what the watch shows, with the client's own
// writes laid over it (package coherence). A subscriber has a set of dirty keys and
// nothing more: a burst of events on one object is one key, a slow subscriber costs
// nobody anything, and a late one starts from the store.
//
// Whether an own write moves an object into a query or out of it is judged here where that can
// be known: by labels, name, namespace, and the fields that [Resource.Field] reads as the server does.
// Otherwise the write costs one list of the object for each stream concerned. So does a deletion whose
// answer has no version; but a stream without selectors still shows the object, or its watch has said when it was deleted (rule 4
// of package coherence), unless it has just listed anew. What a watch or a list brings the server has judged, and its judgement
// stands.
//
// What the next snapshot will need a copy of, whatever changes, is copied when one has been delivered, while its reader is busy: an
// Update then costs what changed, and only who asks for the next one at once waits for the copying.
//
// # Forms
//
// A stream has a [Form], whole untyped objects, typed ones, or metadata alone, and may have a [Transform]; both are part of
// what makes it shared. Typed objects are decoded by the source, one by one as they come ([ItemLister]); the
// untyped answers to own writes are judged first, and made typed by the source as well ([Typer]). One that does not
// decode ([Undecoded]) costs only itself.
//
// Every object from the server (of a list, an event, the answer to an own write, a
// lookup) is judged by the selectors first, then put into the stream's form, then transformed, and then stored: once per
// version, without locks. One that cannot be is stored as what names it, with the error, so that it is left
// out by itself and versions, deletions and own writes of it count as ever. What a change is worth
// ([Signal]) is the subscriber's own, and is asked after the lock is released, of each change in turn: a
// quiet one never hides a loud one.
//
// # Unions
//
// A query may be several streams of one kind, each late in its own way. What one of them shows of an object is in
// the query; the newest of what they show counts. That it is in none of them is known only for a version that all of
// them have come to, and that none has jumped over: until there is one, what left a stream stays as it was, or as an own
// write has made it since. Streams that are late by more than a moment are helped on by a list at the very
// version that is waited for, so that two of them do not overtake each other by turns. The first snapshot waits until the streams have
// been level once.
//
// # Partitions
//
// A program that has one output per something (per tenant, per gateway) takes its snapshot in [Partitions]: [Query.Key] says which
// keys an object has, and each key gets a struct of its own, of its objects and of those that belong to every partition.
//
//	dirty keys ──▶ index (object ─▶ keys, converted once) ──▶ partitions: what changed in each
//	                                                             │ due: when the accumulator signals
//	                                                             ▼
//	                                           agenda ──▶ Next: a Turn ──▶ Done
//
// A key is due if an object that it has, had, or has now has changed in a way that is worth a signal: one that moves makes both
// keys due. What is not worth it ([Signal], quiet own writes) is in the key's next turn all the same. Changes coalesce: what came and went
// unseen, or is as the last turn had it, is no turn. Whoever calls Next takes in what all streams have first, so that a turn is as
// new as it can be (G2, G4), and nothing runs while all workers are busy.
//
// A partition is there as long as an object has its key; the objects that belong to all make none. When it has been handed out, and the last
// object leaves, it is handed out once more, empty of everything, until that turn is done without an error; then nothing of it is
// held. An object that is invalid still has its keys: those it had before, where they cannot be read now. A partition never ends because
// something does not decode.
//
// A turn costs what changed in its partition: unchanged objects are neither looked at nor converted. The rows of all
// objects are in one index for each field, by name, also of those that no key has; a partition has tables of pointers into it, made
// up to date at its turns. Fields in which it has nothing of its own show one table that all such partitions share.
// In the others what belongs to all is a pointer in each partition's table. A change of what belongs to all is noted for each partition, until
// its turn: that takes time and room in the number of partitions.
//
// A field that is a [snapshot.Lookup] belongs to no partition, and can be read in all turns. What a turn reads, by name or by
// selector, absence included, is noted when it ends, in place of what the turn before had read: from the object to
// the partitions. A change goes to the partitions that have read its object, and to no others; those whose turns are under way
// hold it against what these have read when they end. So a change activates whom it concerns, whenever it comes, and what came and
// went unseen nobody.
//
// # References
//
// With [Query.Refs] only the objects are watched that those of other queries name, by a stream each. The names are read as soon as a stream
// brings an object, by a goroutine that takes the reader's turn for it. An object waits until what it names is known to be present or
// absent; until then it is shown as it was, with what it named then, and all others as they are. So what is shown never names what is not
// known. Nothing waits for ever: after the first snapshot not for what is refused, nor for longer than ten seconds.
//
// # Lists and watches
//
// A feed lists and watches for a stream, in place of client-go's Reflector, which may list at
// resource version "0" (from whatever a server's cache holds), hides why a watch ended, and has no
// place for a probe. A feed asks every list for the newest state, streamed (KEP-3157) or in pages
// straight into the next store; resumes a watch where it ended, with backoff, jitter and the
// server's own Retry-After; and lists again only where the server has forgotten the version (410), its history
// went back, or own writes wait for what no event will bring. After an error, or
// [Config.IdleTimeout] of silence, it asks for the server's newest version first (the probe, rule 8 of package
// coherence).
//
// A cluster that was restored from a backup is recognized by a newest version that is older
// than one it has shown, or has answered an own write with. It is asked as soon as it is back; an own write made before it has
// answered is shown when it has. If it has caught up before it is asked, versions do not tell: the Kubernetes
// documentation asks operators to raise the revision (etcdutl snapshot restore --bump-revision) for this
// reason.
package accumulator
