package intake

import (
	"fmt"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/object"
)

// Private returns an object that the caller and other streams share, or a copy where a function
// of the stream's may write to it.
func (s *Intake) Private(o object.Object) object.Object {
	if (s.Transform != nil || s.Where != nil) && s.base != object.Metadata && object.Fault(o) == nil {
		return o.DeepCopyObject().(object.Object)
	}
	return o
}

// TransformNew makes of a version that the stream does not hold what it is to hold; nil if Where
// leaves the object out. The stream may hold another version, before.
func (s *Intake) TransformNew(o, before object.Object) object.Object {
	bare, was := object.Bare(o), object.Bare(before)
	now := s.transformNew(bare, was)
	if now == nil {
		return nil
	}
	if bare != o && was != nil && object.Alike(now, was) {
		now = was // what changes nothing that is held is no change: the stamp is seen by nobody
	}
	return object.Like(now, o)
}

// transformNew is [Intake.TransformNew] for objects without stamps.
func (s *Intake) transformNew(o, before object.Object) object.Object {
	made := s.judged(o)
	if made == nil || object.Fault(made) != nil {
		return made
	}
	s.compact(made, before)
	if s.Transform == nil {
		return made
	}
	id := object.IDOf(o, s.Resource)
	o = made
	s.Step.Do(&theTransform)
	err := transformed(s.Transform, o)
	s.Step.Do(nil)
	if err != nil {
		return object.Reject(id, nil, err)
	}
	if changed := object.IDOf(o, s.Resource); changed != id {
		return object.Reject(id, nil, fmt.Errorf("the transform changed what says which object it is: %v, before %v", changed, id))
	}
	s.shareParts(o)
	return o
}

// theTransform is what a stream's step runs meanwhile.
var theTransform = "the transform"

// transformed runs the user's function.
func transformed(f *object.Transform, o object.Object) error {
	return guard.Named("the transform panicked", func() error {
		if err := f.Do(o); err != nil {
			return fmt.Errorf("transform: %w", err)
		}
		return nil
	})
}

// ReuseIfEqual returns what the stream holds of an item of a list, whose version it holds already:
// the held object where that has the same content, and else what is made of the item; nil if Where
// leaves that out. Called without locks.
func (s *Intake) ReuseIfEqual(o, held object.Object) object.Object {
	if s.Transform == nil && s.inFormAlready(o) && object.Alike(o, held) {
		return held
	}
	if made := s.TransformNew(o, held); made == nil || !object.Alike(made, held) {
		return made
	}
	return held
}
