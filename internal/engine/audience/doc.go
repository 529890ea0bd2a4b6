// Package audience has what one reader of a stream has not taken yet, and which part of the stream
// the reader sees. It is pure: it has no lock, no goroutine and no request. The stream's lock
// guards what a stream keeps of a reader.
//
// A reader has a set of dirty keys and nothing more (G2, G3). A thousand events on one object are
// one dirty key. A slow reader holds objects' keys, and never events. A key that came and went
// unread is dropped again.
//
//	nothing ──Take──▶ batches      nothing: the whole store is news
//	   ▲                │ ▲        batches: the dirty keys are news
//	   └──── Untake ────┤ │ Take   stale:   the stream cannot tell what has changed since, and the
//	                    ▼ │                 whole store is news again
//	                   stale
//
// [Untaken] moves between these states, and only it does.
package audience
