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
	was := object.Bare(before)
	now := s.transformNew(o, was)
	if now == nil {
		return nil
	}
	if _, stamped := o.(*object.Stamped); stamped && was != nil && object.Alike(now, was) {
		now = was // what changes nothing that is held is no change: the stamp is seen by nobody
	}
	return object.Like(s.Bounded(now), o)
}

// transformNew is [Intake.TransformNew] without the stamp.
func (s *Intake) transformNew(o, before object.Object) object.Object {
	from := o
	if _, received := o.(*object.Received); !received && s.Transform.Changes() && object.Fault(o) == nil {
		from = o.DeepCopyObject().(object.Object) // the Transform may write to the object
	}
	made := s.judged(object.Bare(o), from)
	if made == nil || object.Fault(made) != nil {
		return made
	}
	s.compact(made, before)
	if s.Transform != nil {
		if err := s.transformed(made, object.IDOf(object.Bare(o), s.Resource)); err != nil {
			return s.reject(from, err)
		}
		s.shareParts(made)
	}
	if err := s.invalid(made); err != nil {
		return s.reject(from, err)
	}
	return made
}

// theTransform is what a stream's step runs meanwhile.
var theTransform = "the transform"

// transformed runs the user's function on an object of that identity.
func (s *Intake) transformed(o object.Object, id object.ID) error {
	s.Step.Do(&theTransform)
	defer s.Step.Do(nil)
	err := guard.Named("the transform panicked", func() error {
		if err := s.Transform.Do(o); err != nil {
			return fmt.Errorf("transform: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if changed := object.IDOf(o, s.Resource); changed != id {
		return fmt.Errorf("the transform changed what says which object it is: %v, before %v", changed, id)
	}
	return nil
}

// invalid says why no reader can show what the stream is to hold, nil if they can.
func (s *Intake) invalid(o object.Object) error {
	if s.Valid == nil {
		return nil
	}
	s.Step.Do(&theKey)
	defer s.Step.Do(nil)
	return s.Valid.Check(o)
}

// theKey is what a stream's step runs meanwhile.
var theKey = "the Key function"

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
