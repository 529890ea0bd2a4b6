package stream

import (
	"fmt"
	"sync/atomic"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// room is how many objects the streams of a set may hold together ([Config].ObjectsMax), and how
// many they do. It needs no lock: streams take places one by one, and who has one keeps it until
// its own objects are fewer. So streams that want more than there is wait, and those that have
// what they want lose nothing.
//
// It counts objects and not bytes. Own writes that the watch does not show yet are not among them:
// they must be shown (G4), and [Config].PendingMax bounds them.
type room struct {
	most  int64 // 0: there is no bound for all together, and nothing is counted
	each  int   // then: how many objects one stream may hold
	taken atomic.Int64
}

func newRoom(most int) room { return room{most: int64(max(most, 0)), each: source.ObjectsMost} }

// take takes a place, if there is one.
func (r *room) take() bool {
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

// full is errFull with what can be done.
func (r *room) full() error {
	if r.most == 0 {
		return source.TooMany(r.each)
	}
	return fmt.Errorf("%w: all watches of this client together may hold %d: "+
		"select fewer by a narrower selector, or raise the bound (WithMaxObjects)", source.ErrTooMany, r.most)
}

// exceeds reports whether a list of so many objects cannot be held, whatever else is.
func (r *room) exceeds(objects int) bool {
	return r.most > 0 && int64(objects) > r.most || r.most == 0 && objects > r.each
}

// places are those that a stream has of its set's room. The stream's lock guards them.
//
// A list under way counts together with the store that it is to replace, as the larger of the two:
// else a stream that has more than half of all places could never list again. Both are in memory
// meanwhile. Most of their objects are the same: a version that is held is not held twice.
type places struct {
	taken  int // as many as the store has objects, or as the list under way has, if those are more
	listed int // the objects of the list under way
}

// fit takes the places for a store, or a list under way, of so many objects, if there are as many.
// Called with mu held.
func (s *stream) fit(objects int) bool {
	for s.places.taken < objects {
		if !s.set.room.take() {
			return false
		}
		s.places.taken++
	}
	return true
}

// put stores an object, if there is room for it. Called with mu held.
func (s *stream) put(key object.Key, o object.Object) bool {
	size := s.store.size()
	if _, held := s.store.objects[key]; !held {
		size++
	}
	// Own writes that were given up are held beyond a bound for all watches: what has a place fits.
	if bounded := s.set.room.most > 0; bounded && !s.fit(size) || !bounded && s.set.room.exceeds(size) {
		return false
	}
	s.store.objects[key] = o
	return true
}

// remove takes in the deletion of an object. Called with mu held.
func (s *stream) remove(key object.Key, o object.Object) {
	if left := s.store.namesakes.drop(key, s.store.objects[key], o); left != nil {
		s.store.objects[key] = left
	} else {
		delete(s.store.objects, key)
	}
	s.recount()
}

// recount gives back the places that the stream no longer needs. What own writes have left in the
// store takes places in any case: it is shown. Called with mu held.
func (s *stream) recount() {
	r := &s.set.room
	if r.most == 0 {
		return
	}
	needed := max(s.store.size(), s.places.listed)
	if s.progress.ended {
		needed = 0
	}
	if needed != s.places.taken {
		r.taken.Add(int64(needed - s.places.taken))
		s.places.taken = needed
	}
}

// listing notes how many objects the list under way has, 0 if there is none.
func (s *stream) listing(objects int) {
	s.tally.listed.Store(int64(objects))
	if s.set.room.most == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.listed = objects
	s.recount()
}

// admit takes the places for the list under way, which has so many objects.
func (s *stream) admit(objects int) error {
	if s.set.room.most == 0 {
		if s.set.room.exceeds(objects) {
			return s.set.room.full()
		}
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fit(objects) {
		return s.set.room.full()
	}
	s.places.listed = objects
	return nil
}
