package stream

import (
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/object"
)

// narrowMost is how many narrow listeners a stream serves: each costs it something at each event.
const narrowMost = 64

// Contains reports whether the stream has every object of another one, with as much of it.
func (s *Stream) Contains(key intake.Key) bool {
	return s.Whole() && s.Transform == nil && s.Keep == nil && s.Key.Resource == key.Resource &&
		s.Key.Kind == key.Kind && s.Key.Namespaced == key.Namespaced &&
		(s.Key.Namespace == "" || s.Key.Namespace == key.Namespace) &&
		(s.Key.Form == key.Form || key.Form == object.Metadata && !s.Key.Form.Projects())
}

// serves reports whether the stream can take another narrow listener: it has its objects, and no
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

// read returns what the listener sees of a key. Called with the stream's lock held.
func (l *Listener) read(key object.Key) object.Object {
	return l.part.Sees(key, l.stream.store.Read(key))
}

// everything returns all objects that the listener sees. Called with the stream's lock held.
func (l *Listener) everything() []audience.Change { return l.part.Filter(l.stream.store.Everything()) }

// count returns how many objects of the server the listener sees. Called with the stream's lock
// held.
func (l *Listener) count() (n int) {
	if l.part == nil {
		return l.stream.store.Size()
	}
	for _, o := range l.stream.store.Objects {
		if l.part.Has(o) {
			n++
		}
	}
	return n
}
