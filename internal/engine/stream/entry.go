package stream

import (
	"github.com/kates-go/kates/internal/engine/audience"
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
