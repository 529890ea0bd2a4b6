package coherence

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// View is one stream's side of coherence: what this client wrote and this stream
// has not shown yet. It carries G4 (own writes), G5 (monotonic) and, by ending every
// entry, G6 (no residue). The package documentation has the rules by number.
//
//	     Record(own write)              Observe, Advance, List (watch, bookmark, list)
//	           │                                   │
//	           ▼                                   ▼
//	entries: key → version, content     position: everything up to here is delivered
//	           └────────── Read(key, stored) ──────┘
//	                   what is true now
//
// Recording a write costs O(1) amortized, whatever ends it too, and reading one key
// O(1). Nothing is held for keys without pending writes. A View is not safe for concurrent use.
type View struct {
	options  Options
	position string
	entries  map[Key]entry
	order    []pending // ends by version; superseded ones are skipped
	flights  flights
	content  contents
}

// entry is the newest own write of a key that the stream has not shown.
type entry struct {
	version string
	uid     types.UID
	object  Object // nil: gone, or not in the stream's query any more
	// open: a deletion at an unknown version, newer than this one. Its event ends it.
	open bool
}

type pending struct {
	version string
	key     Key
}

// orderSlack is how many superseded ends may stay in the order before it is
// cleaned, so that writing one key over and over holds one entry.
const orderSlack = 64

// Ended is a key for which a pending write no longer counts, with what was shown for it.
type Ended struct {
	Key    Key
	Object Object
}

// Options of a view. The zero value suits a real API server.
type Options struct {
	// Whole says that the stream has no selector: a DELETED event is a deletion then,
	// and not an object that moved out.
	Whole bool
	// ByContent makes the view go by content for every write, whatever versions the
	// objects carry: for a fake that does not maintain them.
	ByContent bool
	// Same compares content. Needed for writes that are answered without a version.
	Same func(a, b Object) bool
	// Hold bounds how long a write is shown that the watch does not confirm, where
	// content has to stand in for versions.
	Hold time.Duration
}

// NewView returns a view at no position: nothing has been delivered yet.
func NewView(o Options) *View {
	v := &View{
		options: o,
		entries: make(map[Key]entry),
		flights: make(flights),
		content: contents{same: o.Same, hold: o.Hold},
	}
	if o.ByContent {
		v.content.flights = v.flights
	}
	return v
}

// Position is the version up to which everything has been delivered, "" at first.
func (v *View) Position() string { return v.position }

// Pending counts what is held for writes that the stream has not shown.
func (v *View) Pending() int { return len(v.entries) + v.content.held }

// Begin is called before a write of key is sent, so that an event which overtakes
// the answer is recognized where the answer has no version to know it by.
func (v *View) Begin(key Key) { v.flights.begin(key) }

// End is called once for each Begin: after [View.Record] where the write succeeded, at
// once where it failed or its outcome is unknown. It leaves no trace.
func (v *View) End(key Key) { v.flights.end(key) }

// note keeps a deletion that the watch has shown for those who are yet to be answered: rule 4.
func (v *View) note(ev Event) {
	deleted := ev.Object == nil && v.options.Whole
	if f := v.flights[ev.Key]; f != nil && deleted {
		f.gone = remember(f.gone, deletion{uid: ev.UID, version: ev.Version})
	}
}

// Record takes in an own write. The content must be as the stream would show it;
// Object is nil if the object is gone or not in the stream's query. Stored is what the
// watch shows for the key. It reports false where this view cannot judge the write: the
// server is to be asked for the object then, and its answer recorded in place of
// the write (rule 6).
func (v *View) Record(w Write, stored Object, now time.Time) bool {
	if v.options.ByContent || (!Comparable(w.Version) && (w.Object != nil || w.UID == "")) {
		v.content.record(w, now)
		return true
	}
	if !Comparable(w.Version) {
		w.Version = v.flights[w.Key].deleted(w.UID)
	}
	if Comparable(w.Version) && !v.belied(w, stored) {
		v.enter(w)
		return true
	}
	return v.enterOpen(w, stored)
}

// belied reports a deletion whose version cannot be the deletion's: the object is stored at that
// version, or the watch has passed it and shows the object. A server that finds the object gone when
// it is about to delete it may answer with the last state that it had read.
func (v *View) belied(w Write, stored Object) bool {
	if w.Object != nil || stored == nil || stored.GetUID() != w.UID {
		return false
	}
	return stored.GetResourceVersion() == w.Version || v.options.Whole && !Newer(w.Version, v.position)
}

// enter makes an entry: rule 2.
func (v *View) enter(w Write) {
	if !Newer(w.Version, v.position) {
		return // the watch has been there already
	}
	if old, ok := v.entries[w.Key]; ok {
		if !Newer(w.Version, old.version) {
			return // a newer write of ours was answered first
		}
		if old.open && old.uid == w.UID && w.Object != nil {
			old.version = w.Version // of what has been deleted since
			v.entries[w.Key] = old
			return
		}
	}
	v.entries[w.Key] = entry{version: w.Version, uid: w.UID, object: w.Object}
	v.schedule(pending{version: w.Version, key: w.Key})
}

// enterOpen makes an entry for a deletion at an unknown version: rule 4.
func (v *View) enterOpen(w Write, stored Object) bool {
	shown := v.Read(w.Key, stored)
	if !v.options.Whole || shown == nil || shown.GetUID() != w.UID {
		return false
	}
	v.entries[w.Key] = entry{version: shown.GetResourceVersion(), uid: w.UID, open: true}
	return true
}

// schedule puts an end in its place. Answers come back nearly in the order of
// versions, so this looks at the last few only.
func (v *View) schedule(p pending) {
	if len(v.order) > 2*len(v.entries)+orderSlack {
		v.order = slices.DeleteFunc(v.order, func(p pending) bool { return !v.current(p) })
	}
	i := len(v.order)
	for i > 0 && Newer(v.order[i-1].version, p.version) {
		i--
	}
	v.order = slices.Insert(v.order, i, p)
}

// current reports whether an end is still that of an entry.
func (v *View) current(p pending) bool {
	e, ok := v.entries[p.key]
	return ok && !e.open && e.version == p.version
}

// Read returns what is true of key now, given what the watch shows: nil if there is
// no such object in the stream's query.
func (v *View) Read(key Key, stored Object) Object {
	if o, ok := v.content.read(key); ok {
		return o
	}
	if e, ok := v.entries[key]; ok {
		return e.object
	}
	return stored
}

// Known returns the version up to which it is known what is true of key: the position, or
// that of a pending write. For a deletion at an unknown version it reports false: the object is gone, whatever
// the version.
func (v *View) Known(key Key) (version string, bounded bool) {
	e, ok := v.entries[key]
	switch {
	case ok && e.open:
		return "", false
	case ok:
		return e.version, true // newer than the position, or it would have ended
	}
	return v.position, true
}

// Keys calls yield with every key whose reading may differ from what is stored.
func (v *View) Keys(yield func(Key) bool) {
	for k := range v.entries {
		if !yield(k) {
			return
		}
	}
	for k := range v.content.queues {
		if _, both := v.entries[k]; !both && !yield(k) {
			return
		}
	}
}

// Event is a live event of the watch.
type Event struct {
	Key     Key
	UID     types.UID
	Object  Object // nil: deleted, or moved out of the query
	Version string // of the event
}

// Observe takes in a live event. It returns what ended by it, for any key.
func (v *View) Observe(ev Event) (ended []Ended) {
	if end, ok := v.content.observe(ev.Key, ev.Object); ok {
		ended = append(ended, end)
	}
	v.note(ev)
	if e, ok := v.entries[ev.Key]; ok && !e.open && e.object == nil && ev.Object != nil && ev.UID == e.uid && ev.Version == e.version {
		e.open = true // the version was not that of the deletion, see belied
		v.entries[ev.Key] = e
	}
	if e, ok := v.entries[ev.Key]; ok && e.open && Newer(ev.Version, e.version) &&
		(ev.Object == nil) == (ev.UID == e.uid) {
		// The deletion itself, or somebody else who has its name by now.
		delete(v.entries, ev.Key)
		ended = append(ended, Ended{Key: ev.Key})
	}
	return append(ended, v.Advance(ev.Version)...)
}

// Advance moves the position to version, of an event or a bookmark, if that is newer. It
// returns what ended by it.
func (v *View) Advance(version string) (ended []Ended) {
	if !Newer(version, v.position) {
		return nil
	}
	v.position = version
	n := 0
	for ; n < len(v.order) && !Newer(v.order[n].version, v.position); n++ {
		if p := v.order[n]; v.current(p) {
			ended = append(ended, Ended{Key: p.key, Object: v.Read(p.key, nil)})
			delete(v.entries, p.key)
		}
	}
	clear(v.order[:n])
	if v.order = v.order[n:]; len(v.order) == 0 {
		v.order = nil // with the room before it
	}
	return ended
}

// List takes in a whole list of the stream's query as of version; holds returns the
// UID that the list has for a key, "" if none.
func (v *View) List(version string, holds func(Key) types.UID) (ended []Ended) {
	for key, e := range v.entries {
		if e.open && !Newer(e.version, version) && holds(key) != e.uid {
			delete(v.entries, key)
			ended = append(ended, Ended{Key: key})
		}
	}
	return append(ended, v.Advance(version)...)
}

// Expire ends what only a deadline can end (writes without usable versions).
func (v *View) Expire(now time.Time) (ended []Ended) { return v.content.expire(now) }

// Deadline returns when Expire has something to do.
func (v *View) Deadline() (time.Time, bool) { return v.content.deadline() }

// GiveUp drops everything that is pending. Until a list that is no older than the
// journal's floor has been taken in, what is read through the view may be out of date:
// its owner must not show it.
func (v *View) GiveUp() {
	clear(v.entries)
	v.order = nil
	v.content.reset()
}

// Reset starts a new history at version: rule 8. Whatever was read through the view
// before must be read again.
func (v *View) Reset(version string) {
	v.GiveUp()
	for _, f := range v.flights {
		f.gone = nil // they may be there again, under their UIDs
	}
	v.position = version
}
