package stream

import (
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/object"
)

// compare compares the items of a list that may be of a new history with what the stream holds of
// the same versions: the history may turn out to be the same. Called without locks.
func (l *listing) compare() {
	if !l.asked.Doubted {
		return // put has done it
	}
	for key, o := range l.Objects {
		if held, same := l.stream.has(o); same {
			l.Compared[key] = store.Comparison{With: held, Same: object.Alike(o, held)}
		}
	}
}

// prepare makes of an object from the server what the stream holds: in the stream's form, and
// transformed. Nobody else has the object. Called without locks.
func (s *stream) prepare(o object.Object) object.Object {
	if s.Transform == nil && s.Key.Form == object.Whole {
		return o
	}
	held, same := s.has(o)
	if same {
		return held // once per version: only lists are compared
	}
	return s.TransformNew(o, held)
}

// has returns what the stream holds of an object, nil if nothing, and whether it is of this very
// version.
func (s *stream) has(o object.Object) (held object.Object, same bool) {
	key := object.KeyOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Version(key, o)
}
