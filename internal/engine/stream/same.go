package stream

import (
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// comparison is how an item of a list compares with an object of the same version.
type comparison struct {
	with Object
	same bool
}

// Alike reports whether two objects have the same content, all of it. It runs no code of the user.
func Alike(a, b Object) bool {
	a, b = object.Bare(a), object.Bare(b)
	ra, left := a.(*rejected)
	rb, right := b.(*rejected)
	if left && right {
		return ra.text == rb.text && object.SameContent(&ra.PartialObjectMetadata, &rb.PartialObjectMetadata) &&
			object.SameContent(ra.metadata, rb.metadata)
	}
	return left == right && object.SameContent(a, b)
}

// LookAlike reports whether two versions of an object look the same to a reader. That is so if they
// are alike, and if they differ in what is held of them beside a struct.
func LookAlike(a, b Object) bool {
	a, b = object.Bare(a), object.Bare(b)
	pa, some := a.(*object.Projected)
	pb, others := b.(*object.Projected)
	if some && others {
		return object.SameShown(pa, pb)
	}
	return Alike(a, b)
}

// again returns what the stream holds of an item of a list, whose version it holds already: the
// held object where that has the same content, and else what is made of the item. Called without
// locks.
func (s *shape) again(o, held Object) Object {
	if s.transform == nil && s.is(o) && Alike(o, held) {
		return held
	}
	if made := s.made(o, held); !Alike(made, held) {
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
			l.compared[key] = comparison{held, Alike(o, held)}
		}
	}
}

// listed returns the object to store for an item of a list, given what has been shown: the very
// same object where that has the version and the content. Most items have been compared before;
// the others belong to own writes that were answered meanwhile.
func (s *store) listed(shown, o Object, c comparison) Object {
	echo := s.echo(shown, o)
	if echo == o || !coherence.Comparable(o.GetResourceVersion()) {
		return echo
	}
	if c.with != shown {
		c.same = Alike(o, shown)
	}
	if c.same {
		return shown
	}
	return o
}
