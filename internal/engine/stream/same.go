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

// again returns what the stream holds of an item of a list, whose version it holds already: the
// held object where that has the same content, and else what is made of the item. Called without
// locks.
func (s *shape) again(o, held object.Object) object.Object {
	if s.transform == nil && s.is(o) && object.Alike(o, held) {
		return held
	}
	if made := s.made(o, held); !object.Alike(made, held) {
		return made
	}
	return held
}

// compare compares the items of a list that may be of a new history with what the stream holds of
// the same versions: the history may turn out to be the same. Called without locks.
func (l listing) compare() {
	if !l.newHistory {
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
