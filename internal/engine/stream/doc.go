// Package stream keeps objects of an API server up to date: one list+watch of one resource,
// namespace, selectors, form and transform, with the client's own writes laid over what the watch
// shows. Package streamset has all streams of a client, and says who shares one.
//
// Start at [Stream], and at [Listener], which is one reader's view of a stream. The package knows
// nothing of queries, snapshots or clients. It knows of an API server only what a [source.Source]
// lists and watches.
//
//	Source ─▶ reflector ─▶ store (objects + coherence.View) ─▶ dirty keys ─▶ Listener.Take
//	own writes: RecordWrite ────────▲
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
// [Config].ObjectsMax bounds what all streams of a client hold together. A list past it is given up
// where it stands, and a watch ends at the event that would be past it: the store stays as it was
// then, and is not told what comes after. A list is next, after a pause that grows with each
// failure: deletions that make room are behind the event that was refused (store.Room).
//
// # Own writes
//
// [Stream.BeginWrite] comes before the request, [Stream.RecordWrite] after its success, and
// [Stream.EndWrite] when all streams have the outcome. Package streamset judges whether the object
// is among those of a stream. What a watch or a list brings has been judged by the server, and that
// judgement stands.
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
// decode is stored as its identity with the error ([object.Undecoded], [object.Fault]). As far as
// [Config].OriginalsMax allows, its original is stored, too. It is left out by itself, and its
// versions, deletions and own writes count as ever. Whether a change is
// worth a signal ([object.Signal]) is the listener's own decision. It is asked after the lock is
// released, for each change in turn: a quiet change never hides another.
//
// # Locks
//
// A stream's lock comes after that of its set. Neither is held over a request or a user's function.
// One function of ours is called with a stream's lock held: [ListenOptions].Noted.
package stream
