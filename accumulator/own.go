package accumulator

import (
	"time"

	"github.com/kates-go/kates/coherence"
)

// record takes in an own write, its content as this stream would show it. It reports
// false where the server has to be asked instead.
func (s *stream) record(w coherence.Write) bool {
	s.mu.Lock()
	before := s.read(w.Key)
	if !s.view.Record(w, s.stored(w.Key), time.Now()) {
		s.mu.Unlock()
		return false
	}
	wake := s.settle(nil, w.Key, before, true)
	relist := s.view.Pending() > s.streams.config.PendingMax
	if relist {
		s.view.GiveUp()
		s.givenUp = true
	}
	s.expireLater()
	s.mu.Unlock()
	if relist {
		s.feed.relist()
	}
	run(wake)
	return true
}

// expireLater sets the timer that ends, by a new list, writes which no event
// confirms. Called with mu held.
func (s *stream) expireLater() {
	at, ok := s.view.Deadline()
	if !ok || s.expiry != nil || s.ended {
		return
	}
	s.expiry = time.AfterFunc(time.Until(at), func() {
		s.mu.Lock()
		s.expiry, s.expired = nil, true
		s.mu.Unlock()
		// What is stored may be older than the write: only a new list may take its place.
		s.feed.relist()
	})
}

// end stops what time would still do.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	close(s.done)
	if s.expiry != nil {
		s.expiry.Stop()
	}
}

// unsettle notes an own write that the server could not be asked about: the one
// exception to G4. The watch settles it.
func (s *stream) unsettle(key Key, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsettledNow()
	position := s.view.Position()
	until := bound{version: version}
	if !coherence.Comparable(version) { // a deletion's version is not known: it is later than now
		until = bound{version: position, beyond: true}
	}
	if !until.reached(position) && len(s.unsettled) < s.streams.config.PendingMax {
		s.unsettled[key] = until
	}
}

// unsettledNow counts what the watch has not settled yet. Called with mu held.
func (s *stream) unsettledNow() int {
	for key, until := range s.unsettled {
		if until.reached(s.view.Position()) {
			delete(s.unsettled, key)
		}
	}
	return len(s.unsettled)
}

// bound is a version that the watch has to reach, or to pass.
type bound struct {
	version string
	beyond  bool
}

func (b bound) reached(position string) bool {
	if b.beyond {
		return coherence.Newer(position, b.version)
	}
	return !coherence.Newer(b.version, position)
}
