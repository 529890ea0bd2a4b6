package audience

import (
	"maps"
	"time"

	"github.com/kates-go/kates/internal/object"
)

// Untaken is what a reader has not taken yet: a set of dirty keys, and which of them are worth a
// signal.
type Untaken struct {
	taken taken
	// dirty maps a changed key to whether the reader knows an object of that name from the last
	// batch. What is held is bounded by objects, not by events.
	dirty map[object.Key]bool
	// most is how many dirty keys there have been at once: the room that the map has.
	most int
	// newHistory: what the reader knows is of a history that has ended.
	newHistory bool
	// turned: whether there is such a resource at all has changed.
	turned  bool
	changes changes
	signals signals
}

// taken is what a reader has taken of its stream. The rest is news. A reader that has taken
// something keeps it while the stream has nothing to show.
type taken int

const (
	takenNothing taken = iota // no batch: the whole store is news
	takenStale                // batches that the stream can no longer account for: the same
	takenBatches              // batches: what is dirty is news
)

// changes counts changes of objects. Each of them is taken, waits to be taken, or was coalesced.
type changes struct {
	all       uint64
	coalesced uint64    // those that no batch shows: the object has changed again before
	since     time.Time // of the first change that waits; zero: none does
}

// signals are the changes that are worth a signal and have not been taken.
type signals struct {
	any bool
	// perKey: it matters which keys they are.
	perKey bool
	// For perKey. dirty: keys not taken yet that are worth a signal. late: keys that were taken
	// before the answer was yes.
	dirty, late map[object.Key]bool
}

// NewUntaken returns what a reader that has taken nothing has not taken. perKey: the reader wants
// to know for each key whether it is worth a signal.
func NewUntaken(perKey bool) Untaken {
	return Untaken{dirty: make(map[object.Key]bool), signals: signals{perKey: perKey}}
}

// Marked is what a change means to a reader.
type Marked int

const (
	// Unseen: the object came and went before the reader took it.
	Unseen Marked = iota
	// All: the whole store is news in any case.
	All
	// One: the key is dirty.
	One
)

// Mark takes in that what the reader sees of a key went from before to after.
func (u *Untaken) Mark(key object.Key, before, after object.Object) Marked {
	u.changes.all++
	if u.Whole() {
		u.changes.markWhole(before, after)
		return All
	}
	known, dirty := u.dirty[key]
	if !dirty {
		known = before != nil
	}
	if after == nil && !known {
		u.changes.coalesced += 2 // it came and went
		delete(u.dirty, key)
		delete(u.signals.dirty, key)
		if len(u.dirty) == 0 {
			u.changes.since = time.Time{}
		}
		return Unseen
	}
	if dirty {
		u.changes.coalesced++
		return One
	}
	if len(u.dirty) == 0 {
		u.changes.since = time.Now()
	}
	u.dirty[key] = known
	u.most = max(u.most, len(u.dirty))
	return One
}

// markWhole counts a change while the whole store is news.
func (c *changes) markWhole(before, after object.Object) {
	if before != nil {
		c.coalesced++
	}
	if before != nil && after == nil {
		c.coalesced++ // it came and went
	}
	if c.since.IsZero() {
		c.since = time.Now()
	}
}

// Take returns what the reader has not taken, and leaves nothing. everything has all objects that
// the reader sees, and read has one; only one of them is called.
func (u *Untaken) Take(everything func() []Change, read func(object.Key) object.Object) Batch {
	var b Batch
	if u.Whole() {
		b = Batch{Changes: everything(), Extent: Everything, NewHistory: u.newHistory}
		u.newHistory = false
		u.signals.drain()
		u.changes.since = time.Time{}
	} else {
		b = Batch{Extent: Some, Changes: make([]Change, 0, len(u.dirty)), Signals: u.signals.drain()}
		for key := range u.dirty {
			b.Changes = append(b.Changes, Change{key, read(key)})
		}
		u.clean()
	}
	u.taken, u.turned = takenBatches, false
	return b
}

// Untake takes a first batch back: the reader has taken nothing.
func (u *Untaken) Untake() {
	u.taken = takenNothing
	u.clean()
	u.changes.since = time.Now()
}

// Restart makes everything news again, for a reader that may have been shown what the stream can no
// longer account for.
func (u *Untaken) Restart() {
	u.taken = min(u.taken, takenStale)
	u.clean()
	u.changes.since = time.Now()
}

// RestartHistory is Restart where versions do not compare with those that the reader knows.
func (u *Untaken) RestartHistory() {
	u.Restart()
	u.newHistory = true
}

// Turn takes in that the resource is gone, or is there again.
func (u *Untaken) Turn() { u.turned = true }

// News reports whether there is something to take that is worth a signal. optional: that the
// resource is gone, or is there again, is.
func (u *Untaken) News(optional bool) bool {
	return u.taken != takenBatches || u.signals.any && len(u.dirty)+len(u.signals.late) > 0 || optional && u.turned
}

// Whole reports whether the whole store is news, whatever is dirty.
func (u *Untaken) Whole() bool { return u.taken != takenBatches }

// Nothing reports whether the reader has taken nothing.
func (u *Untaken) Nothing() bool { return u.taken == takenNothing }

// Signal takes in that a change of a key is worth a signal.
func (u *Untaken) Signal(key object.Key) {
	_, dirty := u.dirty[key]
	u.signals.add(key, dirty)
}

// Signalled reports whether a change of a key needs no signal any more: it has had one, or,
// without perKey, has been taken.
func (u *Untaken) Signalled(key object.Key) bool {
	if u.signals.perKey {
		return u.signals.dirty[key] || u.signals.late[key]
	}
	_, dirty := u.dirty[key]
	return !dirty || u.signals.any
}

// dirtyRoom is for how many dirty keys a reader keeps room.
const dirtyRoom = 1024

// clean leaves no key dirty. A Go map never shrinks, and clearing one that was large once stays
// slow: it is replaced.
func (u *Untaken) clean() {
	u.signals.dirty, u.signals.late, u.changes.since = nil, nil, time.Time{}
	if u.most > dirtyRoom {
		u.dirty, u.most = make(map[object.Key]bool), 0
	} else {
		clear(u.dirty)
	}
}

// add takes in that a change of a key is worth a signal.
func (n *signals) add(key object.Key, dirty bool) {
	n.any = true
	if !n.perKey {
		return
	}
	to := &n.late
	if dirty {
		to = &n.dirty
	}
	if *to == nil {
		*to = make(map[object.Key]bool)
	}
	(*to)[key] = true
}

// drain returns the keys that are worth a signal, and forgets them.
func (n *signals) drain() map[object.Key]bool {
	keys := n.dirty
	if keys == nil {
		keys = n.late
	} else {
		maps.Copy(keys, n.late)
	}
	*n = signals{perKey: n.perKey}
	return keys
}

// Counts are figures of what a reader was told.
type Counts struct {
	Changes, Coalesced uint64
	Dirty, Room        int       // keys, and the most keys that the map has had
	Since              time.Time // of the first change that waits; zero: none does
}

// Counts returns the figures.
func (u *Untaken) Counts() Counts {
	return Counts{u.changes.all, u.changes.coalesced, len(u.dirty), u.most, u.changes.since}
}

// IsDirty reports whether a key has changed since the last batch.
func (u *Untaken) IsDirty(key object.Key) bool {
	_, dirty := u.dirty[key]
	return dirty || u.Whole()
}
