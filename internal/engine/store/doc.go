// Package store has what a stream holds: the objects that the watch shows, and the own writes laid
// over them that the watch does not show yet (G4). It decides how many objects may be held, and
// keeps apart objects that have one key. It is pure: it has no lock, no goroutine and no request.
// The lock of its stream guards a [Store].
//
//	List ──Replace──▶ Store.Objects ◀── Put, Remove: events
//	                  Store.View    ◀── own writes (package coherence)
//	                       └──▶ Read: what is shown
//
// Rule 9 of package coherence stands here: a version that is shown stays the very same object.
package store
