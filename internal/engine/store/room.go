package store

import (
	"fmt"
	"sync/atomic"

	"github.com/kates-go/kates/internal/engine/source"
)

// Room is how many objects the streams of a set may hold together (Config.ObjectsMax), and how
// many they do. It needs no lock: streams take places one by one, and who has one keeps it until
// its own objects are fewer. So streams that want more than there is wait, and those that have
// what they want lose nothing.
//
// It counts objects and not bytes. Own writes that the watch does not show yet are not among them:
// they must be shown (G4), and Config.PendingMax bounds them.
type Room struct {
	most  int64 // 0: there is no bound for all together, and nothing is counted
	each  int   // then: how many objects one stream may hold
	taken atomic.Int64
}

// NewRoom returns the room for so many objects; 0: there is no bound for all together, and each
// stream has one of its own.
func NewRoom(most int) *Room { return &Room{most: int64(max(most, 0)), each: source.ObjectsMost} }

// takePlace takes a place, if there is one.
func (r *Room) takePlace() bool {
	for {
		n := r.taken.Load()
		if n >= r.most {
			return false
		}
		if r.taken.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Full is the error where there is no room, with what can be done.
func (r *Room) Full() error {
	if r.most == 0 {
		return source.TooMany(r.each)
	}
	return fmt.Errorf("%w: all watches of this client together may hold %d: "+
		"select fewer by a narrower selector, or raise the bound (WithMaxObjects)", source.ErrTooMany, r.most)
}

// Shared reports whether there is a bound for all streams together.
func (r *Room) Shared() bool { return r.most > 0 }

// Exceeds reports whether a list of so many objects cannot be held, whatever else is.
func (r *Room) Exceeds(objects int) bool {
	return r.most > 0 && int64(objects) > r.most || r.most == 0 && objects > r.each
}

// places are those that a stream has of its set's room. The stream's lock guards them.
//
// A list under way counts together with the store that it is to replace, as the larger of the two:
// else a stream that has more than half of all places could never list again. Both are in memory
// meanwhile. Most of their objects are the same: a version that is held is not held twice.
type places struct {
	taken  int  // as many as the store has objects, or as the list under way has, if those are more
	listed int  // the objects of the list under way
	closed bool // none are needed any more
}

// Taken is how many places are taken.
func (r *Room) Taken() int { return int(r.taken.Load()) }
