package store

import (
	"fmt"
	"sync/atomic"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
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

// fit takes the places for a store, or a list under way, of so many objects, if there are as many.
func (s *Store) fit(objects int) bool {
	for s.places.taken < objects {
		if !s.room.takePlace() {
			return false
		}
		s.places.taken++
	}
	return true
}

// Add takes in an object that the watch has brought, if there is room for it. shown is what is
// shown of the key: it stays the very same object if it is of the same version.
func (s *Store) Add(key object.Key, shown, o object.Object) bool {
	beside := s.namesakes.add(key, s.Objects[key], o)
	if s.Put(key, s.KeepIfSameVersion(shown, beside)) {
		return true
	}
	s.namesakes.drop(key, s.Objects[key], o)
	return false
}

// Put stores an object, if there is room for it.
func (s *Store) Put(key object.Key, o object.Object) bool {
	size := s.Size()
	if _, held := s.Objects[key]; !held {
		size++
	}
	// Own writes that were given up are held even if they are more than a shared bound allows. So
	// an object that has a place already fits.
	if bounded := s.room.Shared(); bounded && !s.fit(size) || !bounded && s.room.Exceeds(size) {
		return false
	}
	s.Objects[key] = o
	return true
}

// Remove takes in the deletion of an object.
func (s *Store) Remove(key object.Key, o object.Object) {
	if left := s.namesakes.drop(key, s.Objects[key], o); left != nil {
		s.Objects[key] = left
	} else {
		delete(s.Objects, key)
	}
	s.recount()
}

// recount gives back the places that the stream no longer needs. What own writes have left in the
// store takes places in any case: it is shown.
func (s *Store) recount() {
	if !s.room.Shared() {
		return
	}
	needed := max(s.Size(), s.places.listed)
	if s.places.closed {
		needed = 0
	}
	if needed != s.places.taken {
		s.room.taken.Add(int64(needed - s.places.taken))
		s.places.taken = needed
	}
}

// Close gives back all places.
func (s *Store) Close() {
	s.places.closed = true
	s.recount()
}

// SetListSize takes in how many objects the list under way has, 0 if there is none.
func (s *Store) SetListSize(objects int) {
	s.places.listed = objects
	s.recount()
}

// Admit takes the places for the list under way, which has so many objects, in a room that is
// shared.
func (s *Store) Admit(objects int) error {
	if !s.fit(objects) {
		return s.room.Full()
	}
	s.places.listed = objects
	return nil
}
