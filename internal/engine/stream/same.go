package stream

import (
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// comparison is how an item of a list compares with an object of the same version.
type comparison struct {
	with object.Object
	same bool
}

// compare compares the items of a list that may be of a new history with what the stream holds of
// the same versions: the history may turn out to be the same. Called without locks.
func (l *listing) compare() {
	if !l.asked.Doubted {
		return // put has done it
	}
	for key, o := range l.objects {
		if held, same := l.stream.has(o); same {
			l.compared[key] = comparison{held, object.Alike(o, held)}
		}
	}
}

// listed returns the object to store for an item of a list, given what has been shown: the very
// same object where that has the version and the content. Most items have been compared before;
// the others belong to own writes that were answered meanwhile.
func (s *store) listed(shown, o object.Object, c comparison) object.Object {
	echo := s.echo(shown, o)
	if echo == o || !coherence.Comparable(o.GetResourceVersion()) {
		return echo
	}
	if c.with != shown {
		c.same = object.Alike(o, shown)
	}
	if c.same {
		return shown
	}
	return o
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
	return s.store.version(key, o)
}
