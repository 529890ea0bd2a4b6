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
//	         Record(own write)                Observe / Advance (watch, bookmark, list)
//	               │                                   │
//	               ▼                                   ▼
//	entries: key → version, content         position: everything up to here is delivered
//	tombstones: UID → bound                            │
//	               └────────── Read(key, stored) ──────┘
//	                       what is true now
//
// Recording costs O(1) amortized, reading one key O(1), and nothing is held for
// keys without pending writes. A View is not safe for concurrent use.
type View struct {
	position   string
	entries    map[Key]entry
	order      []pending // entries by version; a superseded one is stale and skipped
	tombstones map[types.UID]tombstone
	content    contents
}

type entry struct {
	version string
	object  Object // nil: gone, or not in the stream's query any more
}

// orderSlack is how many superseded entries may stay in the order before it is
// cleaned, so that writing one key over and over holds one entry.
const orderSlack = 64

type pending struct {
	version string
	key     Key
}

type tombstone struct {
	key   Key
	since uint64 // the journal's tick at which the delete had returned
	bound string // "" while unknown
}

// Ended is a key for which a pending write no longer counts.
type Ended struct {
	Key    Key
	object Object    // an entry's content
	hidden types.UID // or what a tombstone hid
}

// Before returns what was shown for the key until then, given what the watch shows
// now.
func (e Ended) Before(stored Object) Object {
	if e.hidden == "" {
		return e.object
	}
	if stored != nil && stored.GetUID() == e.hidden {
		return nil
	}
	return stored
}

// Options of a view. The zero value suits a real API server.
type Options struct {
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
	return &View{
		entries:    make(map[Key]entry),
		tombstones: make(map[types.UID]tombstone),
		content:    contents{always: o.ByContent, same: o.Same, hold: o.Hold},
	}
}

// Position is the version up to which everything has been delivered, "" at first.
func (v *View) Position() string { return v.position }

// Pending counts what is held for writes that the stream has not shown.
func (v *View) Pending() int {
	return len(v.entries) + len(v.tombstones) + v.content.len()
}

// Begin is called before a write of key is sent, so that an event which overtakes
// the answer is recognized where versions cannot tell.
func (v *View) Begin(key Key) { v.content.begin(key) }

// End is called once for each Begin: after [View.Record] where the write succeeded, at
// once where it failed or its outcome is unknown. It leaves no trace.
func (v *View) End(key Key) { v.content.end(key) }

// Record takes in an own write. The content must be as the stream would show it;
// Object is nil if the object is gone or not in the stream's query. It returns what
// ended by it: older tombstones that the write's version closes.
func (v *View) Record(r Record, now time.Time) (ended []Ended) {
	if v.bound(r) {
		ended = v.settle()
	}
	switch {
	case v.content.always, !Comparable(r.Version) && (r.Object != nil || r.UID == ""):
		v.content.record(r.Write, now)
	case !Comparable(r.Version): // gone, and only its UID is known: rule 4
		v.tombstones[r.UID] = tombstone{key: r.Key, since: r.ended}
	default:
		v.enter(r.Write)
	}
	return ended
}

// enter makes an entry: rule 2.
func (v *View) enter(w Write) {
	if !Newer(w.Version, v.position) {
		return // the watch has been there already
	}
	if old, ok := v.entries[w.Key]; ok && !Newer(w.Version, old.version) {
		return // a newer write of ours was answered first
	}
	v.entries[w.Key] = entry{version: w.Version, object: w.Object}
	if len(v.order) > 2*len(v.entries)+orderSlack {
		v.order = slices.DeleteFunc(v.order, func(p pending) bool { return v.entries[p.key].version != p.version })
	}
	p := pending{version: w.Version, key: w.Key}
	// Answers come back nearly in order, so this looks at the last few only.
	i := len(v.order)
	for i > 0 && Newer(v.order[i-1].version, w.Version) {
		i--
	}
	v.order = slices.Insert(v.order, i, p)
}

// bound gives the tombstones that a fresh version closes their bound: rule 4.
func (v *View) bound(r Record) (any bool) {
	if !Comparable(r.Version) || !r.New {
		return false
	}
	for uid, t := range v.tombstones {
		if t.bound == "" && r.fresh(t.since) {
			t.bound, any = r.Version, true
			v.tombstones[uid] = t
		}
	}
	return any
}

// Bound takes in the version of a list of the resource that began after ticket t
// was taken (a probe), as the bound of tombstones made before.
func (v *View) Bound(t Ticket, version string) (ended []Ended) {
	v.bound(Record{Write: Write{Version: version, New: true}, begun: t.begun})
	return v.settle()
}

// Unbound counts the tombstones that wait for a bound: a probe would give it.
func (v *View) Unbound() (n int) {
	for _, t := range v.tombstones {
		if t.bound == "" {
			n++
		}
	}
	return n
}

// Read returns what is true of key now, given what the watch shows: nil if there is
// no such object in the stream's query.
func (v *View) Read(key Key, stored Object) Object {
	if o, ok := v.content.read(key); ok {
		return o
	}
	if e, ok := v.entries[key]; ok {
		stored = e.object
	}
	if stored != nil && len(v.tombstones) > 0 {
		if _, dead := v.tombstones[stored.GetUID()]; dead && stored.GetUID() != "" {
			return nil
		}
	}
	return stored
}

// Keys calls yield with every key whose reading may differ from what is stored.
func (v *View) Keys(yield func(Key) bool) {
	for k := range v.entries {
		if !yield(k) {
			return
		}
	}
	for _, t := range v.tombstones {
		if !yield(t.key) {
			return
		}
	}
	v.content.keys(yield)
}

// Observe takes in a live event: object is nil for a deletion, version is the
// event's. It returns what ended by it, for any key.
func (v *View) Observe(key Key, object Object, version string) (ended []Ended) {
	if e, ok := v.content.observe(key, object); ok {
		ended = append(ended, e)
	}
	return append(ended, v.Advance(version)...)
}

// Advance moves the position to version, of an event, a bookmark or a whole list, if
// that is newer. It returns what ended by it.
func (v *View) Advance(version string) (ended []Ended) {
	if !Newer(version, v.position) {
		return nil
	}
	v.position = version
	return v.settle()
}

// settle ends every entry and tombstone that the position has reached.
func (v *View) settle() (ended []Ended) {
	n := 0
	for ; n < len(v.order) && !Newer(v.order[n].version, v.position); n++ {
		p := v.order[n]
		if e, ok := v.entries[p.key]; ok && e.version == p.version {
			ended = append(ended, Ended{Key: p.key, object: v.Read(p.key, nil)})
			delete(v.entries, p.key)
		}
	}
	v.order = slices.Delete(v.order, 0, n)
	for uid, t := range v.tombstones {
		if t.bound != "" && !Newer(t.bound, v.position) {
			delete(v.tombstones, uid)
			ended = append(ended, Ended{Key: t.key, hidden: uid})
		}
	}
	return ended
}

// Expire ends what only a deadline can end (writes without usable versions).
func (v *View) Expire(now time.Time) (ended []Ended) { return v.content.expire(now) }

// Deadline returns when Expire has something to do.
func (v *View) Deadline() (time.Time, bool) { return v.content.deadline() }

// Reset starts a new history at version: rule 6. Whatever was read through the view
// before must be read again.
func (v *View) Reset(version string) {
	clear(v.entries)
	clear(v.tombstones)
	v.order = nil
	v.content.reset()
	v.position = version
}
