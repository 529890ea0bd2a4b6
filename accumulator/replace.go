package accumulator

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// replace takes in a whole list, as of version.
//
// A list that is older than what the stream, or an own write, has had is refused, and asked for
// again. It is older for a reason where the server was asked for its newest state, and insists on one
// that is older than what it had shown by then: its history has gone back.
func (s *stream) replace(fresh map[Key]Object, version string, asked ask) error {
	s.mu.Lock()
	position := coherence.Newest(s.view.Position(), asked.atLeast)
	older := coherence.Newer(position, version) && !s.streams.config.ByContent
	switch {
	case older && !coherence.Newer(asked.atLeast, version):
		s.mu.Unlock() // overtaken while it was on its way
		return fmt.Errorf("a list at version %s, older than %s that has been shown meanwhile", version, position)
	case older && !asked.doubted:
		s.mu.Unlock()
		return fmt.Errorf("%w: %s, and %s before", errOlder, version, position)
	case s.givenUp && !older && coherence.Newer(s.atLeast, version):
		s.mu.Unlock() // it was under way already
		return fmt.Errorf("a list at version %s, older than the newest own write", version)
	}
	wake := s.swap(fresh, version, older)
	if s.synced {
		s.health.restarts++
	}
	s.synced = true
	recovered := s.well() // before anybody is woken, who might look
	if s.givenUp {
		s.givenUp, s.atLeast = false, ""
		for sub := range s.subs {
			sub.resume()
		}
	}
	for sub := range s.subs { // the first list is news, also when it is empty
		sub.touch()
		wake = append(wake, sub.wake)
	}
	s.tell()
	s.mu.Unlock()
	s.logRecovered(recovered)
	if older {
		s.streams.restored(s, version)
	}
	run(wake)
	return nil
}

// swap puts the fresh store in the old one's place and marks what differs. Called
// with mu held.
func (s *stream) swap(fresh map[Key]Object, version string, restored bool) (wake []func()) {
	old := s.store
	s.asOf, s.listed = version, version
	overlaid := make(map[Key]Object)
	for key := range s.view.Keys {
		overlaid[key] = s.read(key)
	}
	shown := func(key Key) Object {
		if o, ok := overlaid[key]; ok {
			return o
		}
		return old[key]
	}
	s.store = fresh
	if restored {
		s.view.Reset(version)
		for sub := range s.subs {
			sub.restart()
			sub.anew = true
		}
	} else {
		if s.streams.config.ByContent {
			s.confirm(overlaid)
		}
		if s.expired {
			s.expired = false
			s.view.Expire(time.Now())
			s.expireLater()
		}
		s.view.List(version, func(key Key) types.UID { return object.UIDOf(fresh[key]) })
	}
	for key, o := range fresh {
		if restored { // versions of the two histories do not compare
			continue
		}
		fresh[key] = s.echo(shown(key), o)
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
	return wake
}

// confirm lets a list stand in for the events of own writes that it contains. Called
// with mu held, the store replaced.
func (s *stream) confirm(pending map[Key]Object) {
	for key := range pending {
		s.view.Observe(coherence.Event{Key: key, Object: s.stored(key)})
	}
}
