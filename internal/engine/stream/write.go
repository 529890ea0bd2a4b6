package stream

import (
	"context"
	"errors"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/object"
)

// Write is an own write under way. Begin one before the request is sent, then either Commit or
// Abandon it.
type Write struct {
	set      *Set
	resource object.Resource
	key      object.Key
	// begun are the streams that know of it, each with the write as that stream holds it.
	begun map[*stream]*coherence.Write
}

// Begin notes that a write of an object is about to be sent. The name is empty where the server is
// to make it.
func (s *Set) Begin(r object.Resource, key object.Key) *Write {
	if !r.Namespaced {
		key.Namespace = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &Write{set: s, resource: r, key: key}
	if key.Name == "" {
		return w
	}
	w.begun = make(map[*stream]*coherence.Write)
	for _, st := range s.over(r.Storage) {
		if st.Covers(key) {
			st.takeOff(key)
			w.begun[st] = nil
		}
	}
	return w
}

// Abandon ends a write that failed, or whose outcome is unknown. It leaves no trace.
func (w *Write) Abandon() { w.land(nil) }

func (w *Write) land(done *coherence.Write) {
	for st, came := range w.begun {
		if came == nil {
			came = done
		}
		st.land(w.key, came)
	}
	w.begun = nil
}

// Commit takes in a write that has succeeded: from now on every reading of every stream shows it.
// Streams that cannot judge the answer (another version of the resource, a field that
// [object.Resource.Field] does not read) ask the server for the object as they would show it: one
// request each, under ctx. If the answer tells nothing at all, one request comes before these.
// Where that fails the error says so; the write has succeeded nonetheless, and the watch will
// bring it: until then no stream shows it.
func (w *Write) Commit(ctx context.Context, o intake.Outcome) error {
	s := w.set
	if !w.resource.Namespaced {
		o.Key.Namespace = ""
	}
	o, err := w.resolveOutcome(ctx, o)
	if err != nil {
		w.land(nil)
		return err
	}
	s.mu.Lock()
	s.journal.Commit(w.resource.Storage, o.Write)
	streams := s.over(w.resource.Storage)
	s.mu.Unlock()
	by := causeOf(o)
	var unsettled []error
	for _, st := range streams {
		if !st.Covers(o.Key) {
			continue
		}
		st.reach(AtCommit, o.Key)
		if write, ok := st.JudgeWrite(o, w.resource); ok && w.record(st, write, by) {
			continue
		}
		if err := w.settle(ctx, st, o.Write, by); err != nil {
			st.unsettle(o.Key, o.Version)
			unsettled = append(unsettled, err)
		}
	}
	s.Reach(AtLand)
	if o.Found {
		w.land(nil) // nobody knows whose the events are that have come meanwhile
	} else {
		w.land(&o.Write)
	}
	return errors.Join(unsettled...)
}

// record hands the write to a stream, in the stream's form.
func (w *Write) record(st *stream, o coherence.Write, by cause) bool {
	defer w.set.working.Begin("an own write, as " + st.Key.Resource + " shows it (Transform, Signal)")()
	if object, ok := o.Object.(object.Object); ok {
		o.Object = st.ShareAnswer(st.prepare(st.Private(object)))
	}
	if !st.record(o, by) {
		return false
	}
	if _, begun := w.begun[st]; begun && by != delivered {
		w.begun[st] = &o
	}
	return true
}

// causeOf is why streams show what they show once the outcome is recorded.
func causeOf(o intake.Outcome) cause {
	if o.Found {
		return delivered
	}
	return written
}
