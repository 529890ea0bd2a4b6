package intake

import (
	"fmt"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/object"
)

// theWhere is what a stream's step runs meanwhile.
var theWhere = "the Where function"

// selected returns an object in the stream's form, made of o, if Where lets it in; nil if not. If
// Where fails, it returns an object that says so. One that does not decode is judged by its
// metadata, if Where reads nothing else and the metadata is known, and else it is in.
func (s *Intake) selected(o, inForm object.Object) object.Object {
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
		metadata, _ := object.Shorten(o, s.Resource.Kind) // nil if that fails, too
		return object.Reject(object.IDOf(o, s.Resource), metadata, fmt.Errorf("where: %w", err))
	case !in:
		return nil
	}
	return inForm
}

// LeavesOut reports whether Where leaves out an object that the selectors select.
func (s *Intake) LeavesOut(o object.Object) bool {
	if s.Where == nil {
		return false
	}
	inForm, err := s.inForm(object.Bare(o))
	return err == nil && s.selected(o, inForm) == nil
}
