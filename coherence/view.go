package coherence

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// View holds the own writes that one stream has not shown yet. It carries G4 (own writes), G5
// (monotonic) and, since every entry ends, G6 (no residue). The package documentation has the
// rules by number.
//
//	     Record(own write)              Observe, Advance, List (watch, bookmark, list)
//	           │                                   │
//	           ▼                                   ▼
//	entries: key → version, content     position: everything up to here is delivered
//	           └────────── Read(key, stored) ──────┘
//	                 what the stream shows now
//
// To record a write costs O(1) amortized, and so does its end. To read one key costs O(1). Keys
// without pending writes take no memory. A View is not safe for concurrent use.
type View struct {
	options    Options
	positionRV string
	entries    map[types.NamespacedName]entry
	undated    int       // entries that are open
	order      []pending // ends by version; superseded ones are skipped
	flights    flights
	content    contents
}

// entry is the newest own write of a key that the stream has not shown yet.
type entry struct {
	atRV   string
	uid    types.UID
	object Object // nil: gone, or not in the stream's query any more
	since  time.Time
	// open: a deletion at an unknown version, which is newer than atRV. Its event ends the entry.
	open bool
}

type pending struct {
	atRV string
	key  types.NamespacedName
}

// orderSlack is how many superseded ends may stay in the order before it is cleaned. So a key that
// is written again and again takes the memory of one entry.
const orderSlack = 64

// Ended is a key whose pending write has ended, with the object that was shown for it.
type Ended struct {
	Key    types.NamespacedName
	Object Object
}

// Options of a view. The zero value suits a real API server.
type Options struct {
	// Whole says that the stream has no selector. Then a DELETED event is a deletion, and not an
	// object that moved out of the selector.
	Whole bool
	// Same compares content. It is needed for writes that are answered without a version.
	Same func(a, b Object) bool
	// Hold is how long a write that is judged by content is shown while the watch does not confirm
	// it.
	Hold time.Duration
}

// NewView returns a view without a position: nothing has been delivered yet.
func NewView(o Options) *View {
	return &View{
		options: o,
		entries: make(map[types.NamespacedName]entry),
		flights: make(flights),
		content: contents{same: o.Same, hold: o.Hold},
	}
}

// Position is the version up to which everything has been delivered, "" at first.
func (v *View) Position() string { return v.positionRV }

// Newest is a version that nothing is newer than that the stream shows: its position, or that of
// the newest pending write.
func (v *View) Newest() string {
	if last := len(v.order) - 1; last >= 0 {
		return Newest(v.positionRV, v.order[last].atRV)
	}
	return v.positionRV
}

// Pending counts the writes that the stream has not shown yet.
func (v *View) Pending() int { return len(v.entries) + v.content.held }

// Begin is called before a write of key is sent. An event may overtake the write's answer; where
// the answer has no version, the view recognizes the event by what it kept since Begin.
func (v *View) Begin(key types.NamespacedName) { v.flights.addWrite(key) }

// End is called once for each Begin: after [View.Record] if the write succeeded, at once if it
// failed or its outcome is unknown. A write that is not recorded leaves no trace.
func (v *View) End(key types.NamespacedName) { v.flights.removeWrite(key) }

// note keeps what the watch has shown, for writes that are not answered yet: rule 4.
func (v *View) note(ev Event) {
	if f := v.flights[ev.Key]; f != nil && ev.Object == nil && (v.options.Whole || ev.LastRV != "") {
		f.gone = remember(f.gone, moment{uid: ev.UID, atRV: ev.Version, lastRV: ev.LastRV})
	}
}

// Record adds an own write. Its object is as the stream would show it, nil if the object is gone
// or not in the stream's query. Stored is what the watch shows for the key. Record reports false
// if the view cannot judge the write: then the server is asked for the object, and its answer is
// recorded in place of the write (rule 6).
func (v *View) Record(w Write, stored Object, now time.Time) bool {
	if !Comparable(w.Version) && (w.Object != nil || w.UID == "") {
		v.content.record(w, now)
		return true
	}
	seen, isSeen := v.flights[w.Key].deleted(w.UID)
	if isSeen && w.Object != nil && w.UID != "" && (v.options.Whole || seen.lastRV == w.Object.GetResourceVersion()) {
		return true // it is from before the deletion, which may have no version (rule 10)
	}
	if !Comparable(w.Version) {
		w.Version = seen.atRV
	}
	if Comparable(w.Version) && !v.belied(w, stored) {
		v.enter(w, now)
		return true
	}
	return v.enterOpen(w, stored, now)
}

// belied reports whether the version of a deletion's answer cannot be the deletion's: the object
// is stored at that version, or the watch has passed it and still shows the object. A server that
// finds an object already gone may answer a DELETE with the last state that it had read.
func (v *View) belied(w Write, stored Object) bool {
	if w.Object != nil || stored == nil || stored.GetUID() != w.UID {
		return false
	}
	return stored.GetResourceVersion() == w.Version || v.options.Whole && !Newer(w.Version, v.positionRV)
}

// enter makes an entry: rule 2.
func (v *View) enter(w Write, now time.Time) {
	if !Newer(w.Version, v.positionRV) {
		return // the watch has passed it
	}
	if old, ok := v.entries[w.Key]; ok {
		if !Newer(w.Version, old.atRV) {
			return // a newer write of ours was answered first
		}
		if old.open && old.uid == w.UID && w.Object != nil {
			old.atRV = w.Version // the object was written before it was deleted
			v.put(w.Key, old)
			return
		}
	}
	v.put(w.Key, entry{atRV: w.Version, uid: w.UID, object: w.Object, since: now})
	v.schedule(pending{atRV: w.Version, key: w.Key})
}

func (v *View) put(key types.NamespacedName, e entry) {
	v.drop(key)
	v.entries[key] = e
	if e.open {
		v.undated++
	}
}

func (v *View) drop(key types.NamespacedName) {
	if v.entries[key].open {
		v.undated--
	}
	delete(v.entries, key)
}

// Undated returns how many deletions at unknown versions are pending: the view is newer than its
// position, and than every pending write that has a version.
func (v *View) Undated() int { return v.undated }

// enterOpen makes an entry for a deletion at an unknown version: rule 4.
func (v *View) enterOpen(w Write, stored Object, now time.Time) bool {
	shown := v.Read(w.Key, stored)
	if !v.options.Whole || shown == nil || shown.GetUID() != w.UID {
		return false
	}
	v.put(w.Key, entry{atRV: shown.GetResourceVersion(), uid: w.UID, open: true, since: now})
	return true
}

// schedule inserts the end of an entry by its version. Answers arrive nearly in the order of
// versions, so it compares with the last few ends only.
func (v *View) schedule(p pending) {
	if len(v.order) > 2*len(v.entries)+orderSlack {
		v.order = slices.DeleteFunc(v.order, func(p pending) bool { return !v.current(p) })
	}
	i := len(v.order)
	for i > 0 && Newer(v.order[i-1].atRV, p.atRV) {
		i--
	}
	v.order = slices.Insert(v.order, i, p)
}

// current reports whether p is still the end of its key's entry.
func (v *View) current(p pending) bool {
	e, ok := v.entries[p.key]
	return ok && !e.open && e.atRV == p.atRV
}

// Read returns what the stream shows for key, given what the watch shows: nil if there is no such
// object in the stream's query.
func (v *View) Read(key types.NamespacedName, stored Object) Object {
	if o, ok := v.content.read(key); ok {
		return o
	}
	if e, ok := v.entries[key]; ok {
		return e.object
	}
	return stored
}

// Known returns the version up to which the stream knows key: its position, or the version of a
// pending write. It reports false for a deletion at an unknown version: the object is gone at
// every later version.
func (v *View) Known(key types.NamespacedName) (knownRV string, bounded bool) {
	e, ok := v.entries[key]
	switch {
	case ok && e.open:
		return "", false
	case ok:
		return e.atRV, true // newer than the position, or it would have ended
	}
	return v.positionRV, true
}

// Keys calls yield with every key for which Read may return something else than what is stored.
func (v *View) Keys(yield func(types.NamespacedName) bool) {
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
	Key     types.NamespacedName
	UID     types.UID
	Object  Object // nil: deleted, or moved out of the query
	Version string // of the event; "" if it does not tell (rule 10)
	LastRV  string // then, the version of the object that was deleted
}

// Observe adds a live event. It returns the pending writes that it ended, of any key.
func (v *View) Observe(ev Event) (ended []Ended) {
	if end, ok := v.content.observe(ev.Key, ev.Object); ok {
		ended = append(ended, end)
	}
	v.note(ev)
	if e, ok := v.entries[ev.Key]; ok && !e.open && e.object == nil && ev.Object != nil && ev.UID == e.uid && ev.Version == e.atRV {
		e.open = true // the version was not the deletion's, see belied
		v.put(ev.Key, e)
	}
	if e, ok := v.entries[ev.Key]; ok && e.over(ev) {
		v.drop(ev.Key)
		ended = append(ended, Ended{Key: ev.Key, Object: e.object})
	}
	return append(ended, v.Advance(ev.Version)...)
}

// over reports whether an event ends an entry, whatever its version. A deletion at an unknown
// version ends with the deletion itself, or with a newer object of the same name. What the server
// was asked for ends with the deletion of that very state (rule 10).
func (e entry) over(ev Event) bool {
	switch {
	case ev.Object != nil:
		return e.open && ev.UID != e.uid && Newer(ev.Version, e.atRV)
	case ev.UID != e.uid:
		return false
	}
	return e.open || e.object != nil && ev.LastRV != "" && e.object.GetResourceVersion() == ev.LastRV
}

// LastState reports whether a DELETED event has the last state of its object, which is stored, and
// not the version of the deletion: rule 10. The event is observed without a version.
func LastState(stored, deleted Object) bool {
	return stored != nil && Comparable(deleted.GetResourceVersion()) &&
		stored.GetUID() == deleted.GetUID() && stored.GetResourceVersion() == deleted.GetResourceVersion()
}

// Advance moves the position to the version of an event or a bookmark, if that is newer. It
// returns the pending writes that it ended.
func (v *View) Advance(toRV string) (ended []Ended) {
	if !Newer(toRV, v.positionRV) {
		return nil
	}
	v.positionRV = toRV
	n := 0
	for ; n < len(v.order) && !Newer(v.order[n].atRV, v.positionRV); n++ {
		if p := v.order[n]; v.current(p) {
			ended = append(ended, Ended{Key: p.key, Object: v.Read(p.key, nil)})
			v.drop(p.key)
		}
	}
	clear(v.order[:n])
	if v.order = v.order[n:]; len(v.order) == 0 {
		v.order = nil // frees the ends that were dropped
	}
	return ended
}

// List adds a whole list of the stream's query at listRV. The function holds returns the UID that
// the list has for a key, "" if none.
func (v *View) List(listRV string, holds func(types.NamespacedName) types.UID) (ended []Ended) {
	for key, e := range v.entries {
		if e.open && !Newer(e.atRV, listRV) && holds(key) != e.uid {
			v.drop(key)
			ended = append(ended, Ended{Key: key})
		}
	}
	return append(ended, v.Advance(listRV)...)
}

// Expire ends the writes whose deadline has passed: those that are judged by content.
func (v *View) Expire(now time.Time) (ended []Ended) { return v.content.expire(now) }

// Deadline returns when Expire has something to do.
func (v *View) Deadline() (time.Time, bool) { return v.content.deadline() }

// GiveUp drops all pending writes. Until a list that is no older than the journal's floor, Read
// may return older objects than before: the owner must not show them.
func (v *View) GiveUp() {
	clear(v.entries)
	v.undated = 0
	v.order = nil
	v.content.reset()
}

// Reset starts a new history at startRV: rule 8. What was read before must be read again.
func (v *View) Reset(startRV string) {
	v.GiveUp()
	for _, f := range v.flights {
		f.gone = nil // they may exist again, with the same UIDs
	}
	v.positionRV = startRV
}
