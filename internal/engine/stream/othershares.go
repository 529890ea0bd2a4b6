package stream

import "github.com/kates-go/kates/internal/object"

// A replica that takes more or less of a resource's objects than before has another stream for
// that, beside the one before. The objects of both are the same pointers: so a change of the share
// takes no memory for what stays, and nobody who has an object gets another one in its place.

// otherShares returns the streams that hold other shares of a stream's objects, in the same form.
func (s *Set) otherShares(of *stream) (all []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.streams {
		if key.Shard = of.Key.Shard; key == of.Key && st != of {
			all = append(all, st)
		}
	}
	return all
}

// made returns what the stream is to hold of an item: the object that the stream of another share
// holds, where that has the version and the content, and else a new one. held is what this stream
// has of another version.
func (l *listing) made(o, held object.Object) object.Object {
	if !l.asked.Doubted {
		for _, st := range l.others {
			if theirs, same := st.has(o); same {
				return l.stream.ReuseIfEqual(o, theirs)
			}
		}
	}
	return l.stream.TransformNew(o, held)
}
