// Package stream keeps objects of an API server up to date: one list+watch for each distinct
// resource, namespace, selectors, form and transform, with the client's own writes laid over what
// the watch shows. All who ask for the same share it; with [Config].Share it also serves those who
// ask for a part of it (narrow.go).
//
// Start at [Set], the streams of one client, and [Set.Join], which returns a [Listener]. The
// package knows nothing of queries, snapshots or clients. It knows of an API server only what a
// [source.Source] lists and watches.
//
//	Source ─▶ reflector ─▶ store (objects + coherence.View) ─▶ dirty keys ─▶ Listener.Take
//	own writes: Begin, Commit ──────▲
//
// A listener has a set of dirty keys and nothing more. A burst of events on one object is one
// key, a slow listener costs nobody anything, and a late one starts from the store (G2, G3).
//
// # Lists and watches
//
// Package reflector lists and watches for one stream, which is its [reflector.Sink]. Each list asks
// for the newest state, streamed (KEP-3157) or in pages, and goes straight into the next store.
//
// A cluster that was restored from a backup shows a newest version that is older than one it has
// shown, or has answered an own write with. The reflector asks as soon as the server is back; an
// own write made before the answer is shown after it. If the server has caught up before it is
// asked, versions cannot tell: the Kubernetes documentation asks operators to raise the revision
// (etcdutl snapshot restore --bump-revision) for this reason.
//
// [Config].ObjectsMax bounds what all streams of a set hold together. A list past it is given up
// where it stands, and a watch ends at the event that would be past it: the store stays as it was
// then, and is not told what comes after. A list is next, after a pause that grows with each
// failure: deletions that make room are behind the event that was refused (store.Room).
//
// # Own writes
//
// [Set.Begin] comes before the request, [Write.Commit] after its success. Whether an own write
// moves an object into a stream or out of it is judged here where that can be known: by labels,
// name, namespace, and the fields that [object.Resource.Field] reads as the server does. Otherwise
// the write costs one list of the object for each stream concerned. So does a deletion whose
// answer has no version, except where a stream without selectors still shows the object, or its
// watch has said when it was deleted (rule 4 of package coherence).
// What a watch or a list brings has been judged by the server, and that judgement stands.
//
// # Forms
//
// A stream has a [object.Form] (whole untyped objects, typed ones, or metadata alone) and may have
// a [object.Transform]; both are part of what makes it shared. The source decodes typed objects
// one by one; the untyped answers to own writes are judged first, and then made typed by the
// source as well.
//
// Every object from the server (of a list, an event, the answer to an own write, a lookup) is
// judged by the selectors, then put into the stream's form, then transformed, and then stored:
// once per version, without locks. A list that repeats a version is compared with what is held,
// and takes its place where the content differs (rule 9 of package coherence). One that does not
// decode is stored as its identity with the error ([object.Undecoded], [object.Fault]). It is left
// out by itself, and its versions, deletions and own writes count as ever. Whether a change is
// worth a signal ([object.Signal]) is the listener's own decision. It is asked after the lock is
// released, for each change in turn: a quiet change never hides another.
//
// # Locks
//
// The set's lock comes before a stream's. Neither is held over a request or a user's function. Two
// functions of ours are called with a lock held: [ListenOptions].Noted and [Exchange].Do.
package stream
