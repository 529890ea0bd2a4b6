package stream

import (
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/object"
)

// Entry is what a stream has of one key, at one moment.
type Entry struct {
	Stored, Shown object.Object // without and with own writes, nil for none
	ShownRV       string        // the version at which that is shown, "" if unknown
	// Listed: the first list is in.
	Listed bool
	// GaveUp: the stream has given up own writes. It may have shown a newer object.
	GaveUp bool
}

// Entry returns what the stream has of a key.
func (s *Stream) Entry(key object.Key) Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Entry{
		Stored: s.store.Objects[key], Shown: s.store.Read(key),
		Listed: s.progress.phase.listed(), GaveUp: s.progress.phase.gaveUp(),
	}
	e.ShownRV, _ = s.store.View.Known(key)
	return e
}

// Everything returns all objects that the stream shows. ok is false where it shows none yet, or has
// given up own writes.
func (s *Stream) Everything() (all []audience.Change, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress.phase != following {
		return nil, false
	}
	return s.store.Everything(), true
}

// narrowMost is how many narrow listeners a stream serves: each costs it something at each event.
const narrowMost = 64

// Contains reports whether the stream has every object of another one, with as much of it.
func (s *Stream) Contains(key intake.Key) bool {
	return s.Whole() && s.Transform == nil && s.Keep == nil && s.Valid == nil && s.Key.Resource == key.Resource &&
		s.Key.Kind == key.Kind && s.Key.Namespaced == key.Namespaced &&
		(s.Key.Namespace == "" || s.Key.Namespace == key.Namespace) &&
		(s.Key.Form == key.Form || key.Form == object.Metadata && !s.Key.Form.Projects())
}

// TakesPart reports whether the stream can take another narrow listener: it has its objects, and no
// trouble.
func (s *Stream) TakesPart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	narrow := 0
	for l := range s.listeners {
		if l.part != nil {
			narrow++
		}
	}
	return narrow < narrowMost && s.progress.phase.listed() && !s.progress.ended && s.health.state == Synced
}
