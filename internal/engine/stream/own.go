package stream

import (
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// BeginWrite notes that a write of key is about to be sent. It returns the version at which the
// stream knows the key: what the write makes is newer.
func (s *Stream) BeginWrite(key object.Key) (knownRV string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.own.flights[key]
	if f == nil {
		f = &flight{}
		s.own.flights[key] = f
	}
	f.writes++
	s.store.View.Begin(key)
	knownRV, _ = s.store.View.Known(key)
	return knownRV
}

// EndWrite ends what BeginWrite began. w is the write if it has succeeded, else nil.
func (s *Stream) EndWrite(key object.Key, w *coherence.Write) {
	s.mu.Lock()
	s.store.View.End(key)
	f := s.own.flights[key]
	if f.writes--; f.writes == 0 {
		delete(s.own.flights, key)
	}
	var wake []func()
	if f.held && !s.store.Shows(key, w) {
		f.held = false
		for l := range s.listeners {
			before, after := l.part.Narrow(key, f.before), l.read(key)
			if l.QuietOwn && (before != nil || after != nil) && !l.untaken.Signalled(key) {
				wake = append(wake, l.waking(key, before, after))
			}
		}
	}
	s.mu.Unlock()
	run(wake)
}

// RecordWrite takes in an own write, its content as this stream holds it. It returns false where
// the server has to be asked instead.
func (s *Stream) RecordWrite(w coherence.Write, by Cause) bool {
	floor := s.shared.FloorRV(s.Resource.Storage)
	s.mu.Lock()
	before := s.store.Read(w.Key)
	if o, ok := w.Object.(object.Object); ok {
		w.Object = s.store.KeepIfSameVersion(before, o) // a list that settled it may bring what is shown
	}
	undated := s.store.View.Undated()
	recorded := s.store.View.Record(w, s.store.Stored(w.Key), time.Now())
	s.Note(w.Key, s.store.Read(w.Key))
	if !recorded {
		s.mu.Unlock()
		return false
	}
	if w.Object != nil {
		s.health.turn(false, s.listeners) // the watch has yet to notice
	}
	s.noteUndated(undated)
	wake := s.notifyListeners(nil, w.Key, before, by)
	relist := s.store.View.Pending() > s.config.PendingMax
	if relist {
		s.giveUp(floor)
	}
	s.expireLater()
	s.mu.Unlock()
	if relist {
		s.reflector.Relist()
	}
	run(wake)
	return true
}

// noteUndated notes an own deletion at an unknown version, if there are more than before. While
// such a deletion is pending, no position proves that an event is newer than it. Called with mu
// held.
func (s *Stream) noteUndated(before int) {
	if s.store.View.Undated() > before {
		s.own.undated = s.shared.deletions.Add(1)
	}
}

// deletion returns the number of the latest deletion at an unknown version, if that deletion may
// be newer than the position. It may then be newer, too, than each own write that has a version.
// The watch brings such deletions, and so do own writes. 0: there is none. Called with mu held.
func (s *Stream) deletion() int64 {
	number := s.progress.deletion(s.store.View.Position())
	if s.progress.phase.gaveUp() || s.store.View.Undated() > 0 {
		number = max(number, s.own.undated)
	}
	return number
}

// giveUp drops the own writes, until a list has come that is no older than a version. The objects
// as the writes made them stay in the store until then: the list is compared with what was shown.
// Called with mu held.
func (s *Stream) giveUp(atLeastRV string) {
	if s.store.View.Undated() == 0 && !s.progress.phase.gaveUp() {
		s.own.undated = 0
	}
	s.progress.phase, s.own.atLeastRV = s.progress.phase.afterGivingUp(), coherence.Newest(s.own.atLeastRV, atLeastRV)
	for l := range s.listeners {
		l.noted()
	}
	s.store.ApplyOverlay()
}

// expireLater sets the timer that ends, by a new list, writes which no event confirms. Called with
// mu held.
func (s *Stream) expireLater() {
	if s.own.expiry != nil || s.progress.ended {
		return
	}
	at, ok := s.store.View.Deadline()
	if !ok {
		return
	}
	s.own.expiry = time.AfterFunc(time.Until(at), func() {
		s.mu.Lock()
		s.own.expiry, s.own.expired = nil, true
		s.mu.Unlock()
		// What is stored may be older than the write: only a new list may take its place.
		s.reflector.Relist()
	})
}

// Unsettle notes an own write that the server could not be asked about: the one exception to G4.
// The watch settles it.
func (s *Stream) Unsettle(key object.Key, rv string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	position := s.store.View.Position()
	s.own.forgetSettled(position)
	until := bound{rv: rv}
	if !coherence.Comparable(rv) { // the version of a deletion is not known: it is later than now
		until = bound{rv: position, beyond: true}
	}
	if !until.reached(position) && len(s.own.unsettled) < s.config.PendingMax {
		s.own.unsettled[key] = until
	}
}
