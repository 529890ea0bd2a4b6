// Package streamset has the streams of one client: one for each distinct resource, namespace,
// selectors, form and transform. All who ask for the same share a stream. With
// [stream.Config].Share, a stream also serves those who ask for a part of it (narrow.go).
//
// Start at [Set], and at [Set.Join], which returns a [stream.Listener]. A file each has:
//
//	set.go      who shares a stream, and when a stream ends; the journal of own writes
//	narrow.go   which running stream serves a narrower query
//	write.go    an own write, from before its request until every stream shows it
//	lookup.go   what the streams know of one object, or of a list, without a request
//	move.go     all streams to another connection
//	inspect.go  figures, and what only tests ask for
//
// # Own writes
//
// [Set.Begin] comes before the request, [Write.Commit] after its success. Whether an own write
// moves an object into a stream or out of it is judged here where that can be known: by labels,
// name, namespace, and the fields that [object.Resource.Field] reads as the server does. Otherwise
// the write costs one list of the object for each stream concerned. So does a deletion whose
// answer has no version, except where a stream without selectors still shows the object, or its
// watch has said when it was deleted (rule 4 of package coherence).
//
// # Locks
//
// The set's lock comes before a stream's. Neither is held over a request or a user's function. One
// function of ours is called with the set's lock held: [Exchange].Do.
package streamset
