package stream

import (
	"fmt"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/object"
)

// Transform changes an object before a stream holds it. It gets each version of an object once,
// and again with each list that repeats the version: what it makes of it is compared with what is
// held. So it has to make the same of the same object, else each list is a change of all objects.
// Nobody else has the object: it may write to it, but not to its identity and version (apiVersion,
// kind, namespace, name, uid, resourceVersion). It is called without locks, by the goroutine that
// lists and watches and by those that write, at the same time. Where it returns an error or
// panics, that one object is left out as invalid, until its next version, or a list for which it
// does not fail.
//
// Selectors judge an object before it is transformed.
type Transform func(Object) error

// prepare makes of an object from the server what the stream holds: in the stream's form, and
// transformed. Nobody else has the object. Called without locks.
func (s *stream) prepare(o Object) Object {
	if s.transform == nil && s.key.form == Whole {
		return o
	}
	held, same := s.has(o)
	if same {
		return held // once per version: only lists are compared
	}
	return s.made(o, held)
}

// private returns an object that the caller and other streams share, or a copy where the stream
// would write to it.
func (s *shape) private(o Object) Object {
	if s.transform != nil && s.base != Metadata && Fault(o) == nil {
		return o.DeepCopyObject().(Object)
	}
	return o
}

// has returns what the stream holds of an object, nil if nothing, and whether it is of this very
// version.
func (s *stream) has(o Object) (held Object, same bool) {
	key := object.KeyOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.version(key, o)
}

// made is prepare for a version that the stream does not hold. It may hold another one, before.
func (s *shape) made(o, before Object) Object {
	bare, was := object.Bare(o), object.Bare(before)
	now := s.makes(bare, was)
	if bare != o && was != nil && Alike(now, was) {
		now = was // what changes nothing that is held is no change: the stamp is seen by nobody
	}
	return object.Like(now, o)
}

// makes is made for objects without stamps.
func (s *shape) makes(o, before Object) Object {
	switch {
	case Fault(o) != nil:
		return o
	case s.transform == nil && s.is(o):
		s.compact(o, before)
		return o
	}
	id := identityOf(o, s.resource)
	inForm, err := s.inForm(o)
	if err != nil {
		bad := reject(id, err)
		bad.metadata, _ = Shorten(o, s.resource.Kind) // nil if that fails, too
		return bad
	}
	o = inForm
	s.compact(o, before)
	if s.transform == nil {
		return o
	}
	s.step.Do(&theTransform)
	err = transformed(s.transform, o)
	s.step.Do(nil)
	if err != nil {
		return reject(id, err)
	}
	if changed := identityOf(o, s.resource); changed != id {
		return reject(id, fmt.Errorf("the transform changed what says which object it is: %v, before %v", changed, id))
	}
	s.shareParts(o)
	return o
}

// The functions of the user that a stream's step may run.
var theTransform, theSignal = "the transform", "the function that judges what is worth a signal"

// transformed runs the user's function.
func transformed(f Transform, o Object) error {
	return guard.Named("the transform panicked", func() error {
		if err := f(o); err != nil {
			return fmt.Errorf("transform: %w", err)
		}
		return nil
	})
}
