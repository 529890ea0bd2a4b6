package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/object"
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
		wake = s.notifyListeners(wake, key, shown, Delivered)
	}
	s.Recount(s.store.Read)
	return wake
}

// Gone takes in that there is certainly nothing left to watch: the resource is served in no
// version, or the namespace is gone. All objects are deleted. A stream that had none is known to
// be empty.
func (s *Stream) Gone(why error) {
	s.mu.Lock()
	var wake []func()
	if s.progress.phase.listed() {
		wake = s.swap(store.NewList(make(map[object.Key]object.Object)), "", false)
		s.kept.Forget()
		clear(s.own.unsettled)
		for _, e := range s.store.DropWrites() {
			wake = s.notifyListeners(wake, e.Key, e.Object.(object.Object), Delivered)
		}
		s.Recount(s.store.Read)
		s.follow() // own writes that were given up are of objects that are gone
	}
	s.health.turn(true, s.listeners)
	changed, log := s.health.set(Missing, why), s.logFor(!s.progress.phase.listed() && grave(Missing, why, false, s.listeners))
	wake = s.listeners.trouble(wake)
	s.waiters.wake()
	s.mu.Unlock()
	if changed {
		log(why, "gone")
	}
	run(wake)
}

// well notes that a request succeeded. It reports whether the stream has recovered. Called with mu
// held.
func (s *Stream) well() bool {
	state := Synced
	if !s.progress.phase.listed() {
		state = Listing
	}
	s.health.refused = 0
	s.health.turn(false, s.listeners)
	s.health.heard = time.Now()
	return s.health.set(state, nil) && state == Synced
}

func (s *Stream) logRecovered(recovered bool) {
	if recovered {
		s.config.Logger.V(1).Info("watching", "resource", s.Key.Resource, "namespace", s.Key.Namespace)
	}
}

// WentBack notes that the listener's stream has begun in a history that lacks what another stream
// of the same resource has shown, at a version.
func (l *Listener) WentBack(rv string) { l.stream.logWentBack(rv) }

func (s *Stream) logWentBack(rv string) {
	s.config.Logger.Error(nil, "the server's history went back: restored from a backup? starting anew",
		"resource", s.Key.Resource, "version", rv)
}

// toRead is what failed when an event of the watch made no sense, and the watch goes on.
const toRead reflector.Request = "read an event of"

// Failed takes in that a list or watch has failed. Each transition is logged once, not each retry.
func (s *Stream) Failed(what reflector.Request, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	s.mu.Lock()
	state := classify(err)
	if final(err) && what == reflector.ToList {
		s.health.refused++
	}
	changed, log := s.health.set(state, err), s.logFor(grave(state, err, s.progress.phase.listed(), s.listeners))
	s.health.misread = what == toRead
	wake := s.listeners.trouble(nil)
	s.mu.Unlock()
	if changed {
		log(err, "cannot "+string(what)+", will keep trying")
	}
	run(wake)
}

// logFor returns the function that logs an error: as an error if it is grave, else as information.
// The function is called without locks: the logger is the user's.
func (s *Stream) logFor(grave bool) func(err error, what string) {
	return func(err error, what string) {
		log := s.config.Logger.WithValues("resource", s.Key.Resource, "namespace", s.Key.Namespace)
		if grave {
			log.Error(err, what)
		} else {
			log.Info(what, "err", err)
		}
	}
}
