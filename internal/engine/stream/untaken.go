package stream

import (
	"maps"
	"time"

	"github.com/kates-go/kates/internal/object"
)

// untaken is what a listener's reader has not taken yet: a set of dirty keys, and which of them
// are worth a signal. The stream's lock guards it.
type untaken struct {
	// taken is what the reader has taken so far.
	taken taken
	// dirty maps a changed key to whether the reader knows an object of that name from the last
	// batch. A key that came and went unread is dropped again: what is held is bounded by objects,
	// not by events.
	dirty map[object.Key]bool
	// most is how many dirty keys there have been at once: the room that the map has.
	most int
	// newHistory: what the reader knows is of a history that has ended.
	newHistory bool
	tide       tide
	// turned: whether there is such a resource at all has changed.
	turned  bool
	signals signals
}

// tide counts changes. Each of them is taken, waits to be taken, or was coalesced.
type tide struct {
	changes   uint64    // of objects
	coalesced uint64    // those that no batch shows: the object has changed again before
	since     time.Time // of the first change that waits; zero: none does
}

// whole counts a change while the whole store is news.
func (t *tide) whole(before, after object.Object) {
	if before != nil {
		t.coalesced++
	}
	if before != nil && after == nil {
		t.coalesced++ // it came and went
	}
	if t.since.IsZero() {
		t.since = time.Now()
	}
}

// taken is what a listener's reader has taken of its stream. The rest is news. A reader that has
// taken something keeps it while the stream has nothing to show.
type taken int

const (
	// takenNothing: no batch. The whole store is news.
	takenNothing taken = iota
	// takenOther: batches, but the stream cannot tell what has changed since. The whole store is
	// news.
	takenOther
	// takenBatches: batches. What is dirty is news.
	takenBatches
)

// signals are the changes that are worth a signal and have not been taken.
type signals struct {
	any bool
	// perKey: it matters which keys they are.
	perKey bool
	// For perKey. dirty: keys not taken yet that are worth a signal. late: keys that were taken
	// before Signal answered yes.
	dirty, late map[object.Key]bool
}

// note notes that a key has changed. known says whether the reader knows an object of that name.
func (u *untaken) note(key object.Key, known bool) {
	if len(u.dirty) == 0 {
		u.tide.since = time.Now()
	}
	u.dirty[key] = known
	u.most = max(u.most, len(u.dirty))
}

// news reports whether there is something to take that is worth a signal.
func (u *untaken) news() bool {
	return u.taken != takenBatches || u.signals.any && len(u.dirty)+len(u.signals.late) > 0
}

// signal notes that a change of a key is worth a signal.
func (u *untaken) signal(key object.Key) {
	_, dirty := u.dirty[key]
	u.signals.add(key, dirty)
}

// signalled reports whether a change of a key needs no signal any more: it has had one, or,
// without perKey, has been taken.
func (u *untaken) signalled(key object.Key) bool {
	if u.signals.perKey {
		return u.signals.dirty[key] || u.signals.late[key]
	}
	_, dirty := u.dirty[key]
	return !dirty || u.signals.any
}

// whole reports whether the whole store is news, whatever is dirty.
func (u *untaken) whole() bool { return u.taken <= takenOther }

// restart makes everything news again, for a reader that may have been shown what the stream can no
// longer account for.
func (u *untaken) restart() {
	u.taken = min(u.taken, takenOther)
	u.clean()
}

// dirtyRoom is for how many dirty keys a listener keeps room.
const dirtyRoom = 1024

// clean leaves no key dirty. A Go map never shrinks, and clearing one that was large once stays
// slow: it is replaced.
func (u *untaken) clean() {
	u.signals.dirty, u.signals.late, u.tide.since = nil, nil, time.Time{}
	if u.most > dirtyRoom {
		u.dirty, u.most = make(map[object.Key]bool), 0
	} else {
		clear(u.dirty)
	}
}

// add notes that a change of a key is worth a signal.
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

// take returns the keys that are worth a signal, and forgets them.
func (n *signals) take() map[object.Key]bool {
	keys := n.dirty
	if keys == nil {
		keys = n.late
	} else {
		maps.Copy(keys, n.late)
	}
	*n = signals{perKey: n.perKey}
	return keys
}
