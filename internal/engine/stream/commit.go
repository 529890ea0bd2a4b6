package stream

import (
	"fmt"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
)

// commit takes in a whole list, as of a version.
//
// A list that is older than the stream, or than an own write, is refused and asked for again. If
// the server's newest version is older as well (see package reflector), and the next list is, the
// server was restored from a backup: then the list is taken, and a new history begins.
func (s *Stream) commit(l *listing, rv string) error {
	l.compare()
	s.mu.Lock()
	position := coherence.Newest(s.store.View.Position(), l.asked.FloorRV)
	if err := source.CheckListVersion(rv, position); err != nil {
		s.mu.Unlock()
		return err
	}
	older := coherence.Newer(position, rv)
	switch {
	case older && !coherence.Newer(l.asked.FloorRV, rv):
		s.mu.Unlock() // overtaken while it was on its way
		return fmt.Errorf("a list at version %s, older than %s that has been shown meanwhile", rv, position)
	case older && !l.asked.Doubted:
		s.mu.Unlock()
		return fmt.Errorf("%w: %s, and %s before", reflector.ErrOlder, rv, position)
	case s.progress.phase.gaveUp() && !older && coherence.Newer(s.own.atLeastRV, rv):
		s.mu.Unlock() // it was under way already
		return fmt.Errorf("a list at version %s, older than the newest own write", rv)
	}
	s.kept.Listed(l.from)
	wake := s.swap(l.List, rv, older)
	if s.progress.phase.listed() {
		s.health.restarts++
	}
	s.follow()
	recovered := s.well() // before anybody is woken, who might look
	s.health.before = s.health.heard
	for l := range s.listeners { // the first list is news, also when it is empty
		l.noted()
		wake = append(wake, l.Wake)
	}
	s.waiters.wake()
	s.mu.Unlock()
	s.logRecovered(recovered)
	if older {
		s.shared.LowerFloor(s.Resource.Storage)
		s.logWentBack(rv)
	}
	run(wake)
	return nil
}

// follow takes in that what the stream has may be shown. What was given up is over: readers take
// everything. Called with mu held.
func (s *Stream) follow() {
	if s.progress.phase.gaveUp() {
		s.own.atLeastRV = ""
		for l := range s.listeners {
			l.untaken.Restart()
		}
	}
	s.progress.phase = following
}

// swap puts a list in the place of the store and marks what differs. Called with mu held.
func (s *Stream) swap(l store.List, rv string, restored bool) (wake []func()) {
	s.progress.watchRV = rv
	before := s.store.Replace(l, restored, func() {
		if restored {
			s.store.View.Reset(rv)
			clear(s.own.unsettled)
			for l := range s.listeners {
				l.untaken.RestartHistory()
			}
			return
		}
		if s.own.expired {
			s.own.expired = false
			s.store.View.Expire(time.Now())
			s.expireLater()
		}
		s.store.List(rv) // own writes that the list confirms end
	})
	for key, shown := range before {
		wake = s.mark(wake, key, shown, Delivered)
	}
	return wake
}
