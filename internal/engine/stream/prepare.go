package stream

import (
	"fmt"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/object"
)

// prepare makes of an object from the server what the stream holds: in the stream's form, and
// transformed. Nobody else has the object. Called without locks.
func (s *stream) prepare(o object.Object) object.Object {
	if s.transform == nil && s.key.form == object.Whole {
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
func (s *shape) private(o object.Object) object.Object {
	if s.transform != nil && s.base != object.Metadata && object.Fault(o) == nil {
		return o.DeepCopyObject().(object.Object)
	}
	return o
}

// has returns what the stream holds of an object, nil if nothing, and whether it is of this very
// version.
func (s *stream) has(o object.Object) (held object.Object, same bool) {
	key := object.KeyOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.version(key, o)
}

// made is prepare for a version that the stream does not hold. It may hold another one, before.
func (s *shape) made(o, before object.Object) object.Object {
	bare, was := object.Bare(o), object.Bare(before)
	now := s.makes(bare, was)
	if bare != o && was != nil && object.Alike(now, was) {
		now = was // what changes nothing that is held is no change: the stamp is seen by nobody
	}
	return object.Like(now, o)
}

// makes is made for objects without stamps.
func (s *shape) makes(o, before object.Object) object.Object {
	switch {
	case object.Fault(o) != nil:
		return o
	case s.transform == nil && s.is(o):
		s.compact(o, before)
		return o
	}
	id := object.IDOf(o, s.resource)
	inForm, err := s.inForm(o)
	if err != nil {
		metadata, _ := object.Shorten(o, s.resource.Kind) // nil if that fails, too
		return object.Reject(id, metadata, err)
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
		return object.Reject(id, nil, err)
	}
	if changed := object.IDOf(o, s.resource); changed != id {
		return object.Reject(id, nil, fmt.Errorf("the transform changed what says which object it is: %v, before %v", changed, id))
	}
	s.shareParts(o)
	return o
}

// The functions of the user that a stream's step may run.
var theTransform, theSignal = "the transform", "the function that judges what is worth a signal"

// transformed runs the user's function.
func transformed(f object.Transform, o object.Object) error {
	return guard.Named("the transform panicked", func() error {
		if err := f(o); err != nil {
			return fmt.Errorf("transform: %w", err)
		}
		return nil
	})
}
