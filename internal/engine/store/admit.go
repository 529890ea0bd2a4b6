package store

import (
	"github.com/kates-go/kates/internal/object"
)

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
