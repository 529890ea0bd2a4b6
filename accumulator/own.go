package accumulator

import (
	"time"

	"github.com/kates-go/kates/coherence"
)

// flight is what became of a key while an own write of it was under way.
type flight struct {
	writes int
	// held: its events have not signalled to those who ask for quiet own writes. Whether they were
	// the write's own is known when the answer is.
	held   bool
	before Object // what was shown before the first of them
}

// hold holds back a signal.
func (f *flight) hold(before Object) {
	if !f.held {
		f.held, f.before = true, before
	}
}

// begin notes that a write of key is about to be sent.
func (s *stream) begin(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flights[key]
	if f == nil {
		f = &flight{}
		s.flights[key] = f
	}
	f.writes++
	s.view.Begin(key)
}

// land ends what begin began. w is the write if it has succeeded.
func (s *stream) land(key Key, w *coherence.Write) {
	s.mu.Lock()
	s.view.End(key)
	f := s.flights[key]
	if f.writes--; f.writes == 0 {
		delete(s.flights, key)
	}
	var wake []func()
	if f.held && !s.showsWrite(key, w) {
		f.held = false
		for sub := range s.subs {
			if sub.quietOwn && !sub.heeds(key) {
				wake = append(wake, sub.waking(key, f.before, s.read(key)))
			}
		}
	}
	s.mu.Unlock()
	run(wake)
}

// showsWrite reports whether what is shown for key is what w wrote. Called with mu held.
func (s *stream) showsWrite(key Key, w *coherence.Write) bool {
	shown := s.read(key)
	switch {
	case w == nil:
		return false
	case w.Object == nil || shown == nil:
		return w.Object == nil && shown == nil
	case s.streams.config.ByContent || !coherence.Comparable(w.Version):
		return sameContent(shown, w.Object)
	}
	return shown.GetUID() == w.UID && shown.GetResourceVersion() == w.Version
}

// record takes in an own write, its content as this stream holds it. It reports
// false where the server has to be asked instead.
func (s *stream) record(w coherence.Write, how landing) bool {
	floor := s.streams.floor(s.resource.Storage)
	s.mu.Lock()
	before := s.read(w.Key)
	if o, ok := w.Object.(Object); ok {
		w.Object = s.echo(before, o) // a list that settled it may bring what is shown
	}
	if !s.view.Record(w, s.stored(w.Key), time.Now()) {
		s.mu.Unlock()
		return false
	}
	if w.Object != nil {
		s.turn(false) // the watch has yet to notice
	}
	s.asOf = w.Version
	wake := s.settle(nil, nil, w.Key, before, how.by)
	if !how.asked && s.read(w.Key) == nil && coherence.Comparable(w.Version) {
		for sub := range s.subs {
			wake = sub.passed(wake, w, how)
		}
	}
	relist := s.view.Pending() > s.streams.config.PendingMax
	if relist {
		wake = s.giveUp(wake, floor)
	}
	s.expireLater()
	s.mu.Unlock()
	if relist {
		s.feed.relist()
	}
	run(wake)
	return true
}

// giveUp drops what is pending, until a list has come that is no older than a version. Called with mu held.
func (s *stream) giveUp(wake []func(), atLeast string) []func() {
	shown := make(map[Key]Object)
	for key := range s.view.Keys {
		shown[key] = s.read(key)
	}
	s.view.GiveUp()
	s.givenUp, s.atLeast = true, coherence.Newest(s.atLeast, atLeast)
	for key, before := range shown { // the list may not have it, and then nothing else tells that it was there
		wake = s.mark(wake, key, before, delivered)
	}
	return wake
}

// expireLater sets the timer that ends, by a new list, writes which no event
// confirms. Called with mu held.
func (s *stream) expireLater() {
	if s.expiry != nil || s.ended {
		return
	}
	at, ok := s.view.Deadline()
	if !ok {
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

// waiting reports whether something is held until the watch shows a version.
func (s *stream) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Pending() > 0 || s.unsettledNow() > 0
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
