// Package accumulator brings watches together: list+watches in, coalesced changes
// of one snapshot out.
//
// Start at [Streams], the list+watches of one client, and [Streams.New], which makes
// an [Accumulator] of some queries. Package kates puts names, kinds and requests to
// it; this package knows of an API server only what a [Source] lists and watches.
//
//	Source ─▶ Reflector ─▶ stream (store + coherence.View) ─▶ dirty keys ─▶ Accumulator ─▶ struct
//	own writes ─────────────────────▲
//
// A stream is one list+watch, shared by everybody who asks for the same. It is fed
// by client-go's Reflector and keeps what the watch shows, with the client's own
// writes laid over it (package coherence). A subscriber has a set of dirty keys and
// nothing more: a burst of events on one object is one key, a slow subscriber costs
// nobody anything, and a late one starts from the store.
//
// Where client-go's Reflector would start with a list at resource version "0", from
// whatever a server's cache holds, a stream asks for the newest state; and it resumes
// a watch that broke instead of listing again. Both are needed for G5.
package accumulator
