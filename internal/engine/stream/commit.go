package stream

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// commit takes in a whole list, as of a version.
//
// A list that is older than the stream, or than an own write, is refused and asked for again. If
// the server's newest version is older as well (see package reflector), and the next list is, the
// server was restored from a backup: then the list is taken, and a new history begins.
func (s *stream) commit(l *listing, rv string) error {
	l.compare()
	s.mu.Lock()
	position := coherence.Newest(s.store.view.Position(), l.asked.FloorRV)
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
	wake := s.swap(l, rv, older)
	before := s.progress.phase
	if before.listed() {
		s.health.restarts++
	}
	s.progress.phase = following
	recovered := s.well() // before anybody is woken, who might look
	s.health.before = s.health.heard
	if before.gaveUp() {
		s.own.atLeastRV = ""
		for l := range s.listeners {
			l.untaken.Restart()
		}
	}
	for l := range s.listeners { // the first list is news, also when it is empty
		l.noted()
		wake = append(wake, l.Wake)
	}
	s.waiters.wake()
	s.mu.Unlock()
	s.logRecovered(recovered)
	if older {
		s.set.restored(s, rv)
	}
	run(wake)
	return nil
}

// swap puts the fresh store in the old one's place and marks what differs. Called with mu held.
func (s *stream) swap(l *listing, rv string, restored bool) (wake []func()) {
	old, fresh := s.store.objects, l.objects
	s.progress.watchRV = rv
	overlaid := s.store.overlaid()
	shown := func(key object.Key) object.Object {
		if o, ok := overlaid[key]; ok {
			return o
		}
		return old[key]
	}
	s.store.objects, s.store.namesakes = fresh, cmp.Or(l.namesakes, &namesakes{})
	s.kept.Listed(l.from)
	if restored { // versions of the two histories do not compare
		s.store.view.Reset(rv)
		clear(s.own.unsettled)
		for l := range s.listeners {
			l.untaken.RestartHistory()
		}
	} else {
		if s.own.expired {
			s.own.expired = false
			s.store.view.Expire(time.Now())
			s.expireLater()
		}
		s.store.list(rv) // own writes that the list confirms end
		for key, o := range fresh {
			fresh[key] = s.store.listed(shown(key), o, l.compared[key])
		}
	}
	for key := range fresh {
		wake = s.mark(wake, key, shown(key), delivered)
	}
	for key := range old {
		if _, ok := fresh[key]; !ok {
			wake = s.mark(wake, key, shown(key), delivered)
		}
	}
	for key := range overlaid {
		if fresh[key] == nil && old[key] == nil {
			wake = s.mark(wake, key, overlaid[key], delivered)
		}
	}
	s.recount()
	return wake
}
