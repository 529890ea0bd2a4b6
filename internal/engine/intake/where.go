package intake

import (
	"fmt"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/object"
)

// theWhere is what a stream's step runs meanwhile.
var theWhere = "the Where function"

// judged returns an object in the stream's form, or what says that it cannot be brought into that;
// nil if Where leaves it out. The original is that of from.
func (s *Intake) judged(o, from object.Object) object.Object {
	made := o
	if object.Fault(o) == nil && (s.Transform != nil || !s.inFormAlready(o)) {
		var err error
		if made, err = s.inForm(o); err != nil {
			made = s.reject(from, err)
		}
	}
	return s.selected(made, from)
}

// reject returns an object that says why another one cannot be held. It has the original, and the
// metadata, if they can be read.
func (s *Intake) reject(o object.Object, why error) object.Object {
	bare, original := object.Bare(o), object.OriginalOf(o)
	metadata := original.Metadata(s.Resource.Kind)
	if metadata == nil {
		metadata, _ = object.Shorten(bare, s.Resource.Kind)
	}
	return object.Reject(object.IDOf(bare, s.Resource), metadata, original, why)
}

// LeavesOut reports whether Where leaves out an object that the selectors select.
func (s *Intake) LeavesOut(o object.Object) bool {
	return s.Where != nil && s.judged(object.Bare(o), o) == nil
}

// selected returns an object in the stream's form, made of another one, if Where lets it in; nil if
// not. If Where fails, it returns an object that says so. One that does not decode is judged by its
// metadata, if Where reads nothing else and the metadata is known, and else it is in.
func (s *Intake) selected(inForm, from object.Object) object.Object {
	if s.Where == nil {
		return inForm
	}
	judged := inForm
	if object.Fault(inForm) != nil {
		if judged = object.FaultMetadata(inForm); judged == nil || !s.Where.OfMetadata {
			return inForm
		}
	}
	var in bool
	s.Step.Do(&theWhere)
	err := guard.Named("the Where function panicked", func() (err error) {
		in, err = s.Where.Do(judged)
		return err
	})
	s.Step.Do(nil)
	switch {
	case err != nil && object.Fault(inForm) != nil:
		return inForm
	case err != nil:
		return s.reject(from, fmt.Errorf("where: %w", err))
	case !in:
		return nil
	}
	return inForm
}
