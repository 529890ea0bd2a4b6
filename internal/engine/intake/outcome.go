package intake

import (
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// Outcome is what the server's answer to a write tells.
type Outcome struct {
	coherence.Write
	// Unknown: the answer does not tell what became of the object (rule 6): the server is asked.
	Unknown bool
	// found: the object is as the server had it when it was asked. Others may have made it so.
	Found bool
}

// JudgeWrite turns a write into what it means for the stream: the object as the stream shows it, or
// gone from its query. It returns false where only the server can tell.
func (s *Intake) JudgeWrite(o Outcome, written object.Resource) (coherence.Write, bool) {
	w := o.Write
	if o.Unknown {
		return w, false
	}
	if w.Object == nil {
		return w, true
	}
	object, ok := w.Object.(object.Object)
	if ok && s.Selector.ShardIsFixed() && !s.Selector.InShard(object) { // of whichever version of the API
		w.Object = nil
		return w, true
	}
	if !ok || written.GroupVersionResource != s.Resource.GroupVersionResource {
		return w, false
	}
	selected, certain := s.selects(object)
	if !selected {
		w.Object = nil
	}
	return w, certain
}
