package streamset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// Write is an own write under way. Begin one before the request is sent, then either Commit or
// Abandon it.
type Write struct {
	set      *Set
	resource object.Resource
	key      object.Key
	// begun are the streams that know of it, each with the write as that stream holds it.
	begun map[*stream.Stream]*coherence.Write
	// knownRV is the newest version that a stream knew of the object when the write began. What the
	// write makes is newer.
	knownRV string
	ended   chan struct{} // closed when the write ends; nil: nobody waits. The set's lock guards it
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
	w.begun = make(map[*stream.Stream]*coherence.Write)
	s.underWay.add(w)
	for _, st := range s.over(r.Storage) {
		if st.Covers(key) {
			w.knownRV = coherence.Newest(w.knownRV, st.BeginWrite(key))
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
		st.EndWrite(w.key, came)
	}
	w.begun = nil
	w.wakeAwaiting()
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
	if w.key.Name == "" { // the server has made the name
		w.key = o.Key
		s.underWay.add(w)
	}
	s.mu.Unlock()
	by := causeOf(o)
	var unsettled []error
	for _, st := range streams {
		if !st.Covers(o.Key) {
			continue
		}
		st.Reach(stream.AtCommit, o.Key)
		if write, ok := st.JudgeWrite(o, w.resource); ok && w.record(st, write, by) {
			continue
		}
		if err := w.askAndRecord(ctx, st, o.Write, by); err != nil {
			st.Unsettle(o.Key, o.Version)
			unsettled = append(unsettled, err)
		}
	}
	s.Reach(stream.AtLand)
	if o.Found {
		w.land(nil) // nobody knows whose the events are that have come meanwhile
	} else {
		w.land(&o.Write)
	}
	return errors.Join(unsettled...)
}

// record hands the write to a stream, in the stream's form.
func (w *Write) record(st *stream.Stream, o coherence.Write, by stream.Cause) bool {
	defer w.set.working.Begin("an own write, as " + st.Key.Resource + " shows it (Where, Transform, Signal)")()
	if object, ok := o.Object.(object.Object); ok {
		if held := st.Prepare(st.Private(object)); held != nil {
			o.Object = st.ShareAnswer(held)
		} else {
			o.Object = nil // Where leaves it out: it is gone from the query
		}
	}
	if !st.RecordWrite(o, by) {
		return false
	}
	if _, begun := w.begun[st]; begun && by != stream.Delivered {
		w.begun[st] = &o
	}
	return true
}

// causeOf is why streams show what they show once the outcome is recorded.
func causeOf(o intake.Outcome) stream.Cause {
	if o.Found {
		return stream.Delivered
	}
	return stream.Written
}

// resolveOutcome finds out what became of the object. A clear answer is returned as it is. For an
// unclear one, the server is asked for the object once, for all streams. If the server refuses a
// list without a selector, or its versions do not compare, the outcome stays unclear, and Commit
// asks for each stream. On another error no stream shows the write before its watch does.
func (w *Write) resolveOutcome(ctx context.Context, o intake.Outcome) (intake.Outcome, error) {
	s := w.set
	if !o.Unknown {
		return o, nil
	}
	s.mu.Lock()
	streams := slices.DeleteFunc(s.over(w.resource.Storage), func(st *stream.Stream) bool { return !st.Covers(o.Key) })
	s.mu.Unlock()
	if len(streams) == 0 {
		return o, nil
	}
	object, version, err := w.asking(streams).Lookup(ctx, o.Key, o.Version)
	switch {
	case err != nil && refuses(err):
		return o, nil
	case err != nil:
		for _, st := range streams {
			st.Unsettle(o.Key, o.Version)
		}
		return o, fmt.Errorf("ask for %s %q: %w", w.resource.Resource, o.Key, err)
	}
	now := intake.Outcome{Write: coherence.Write{Key: o.Key, UID: o.UID, Version: version}, Found: object != nil}
	if object != nil {
		now.UID, now.Version, now.Object = object.GetUID(), object.GetResourceVersion(), object
	}
	if !coherence.Comparable(now.Version) {
		return o, nil
	}
	return now, nil
}

// asking is how to ask for an object without a selector: as one of the streams does, which knows
// what the server's lists look like, or with a source of its own.
func (w *Write) asking(streams []*stream.Stream) source.Requests {
	for _, st := range streams {
		if st.Resource.GroupVersionResource == w.resource.GroupVersionResource && st.Key.Form == object.Whole {
			all := st.Requests()
			all.Selection = metav1.ListOptions{}
			return all
		}
	}
	lockorder.CallOut("Config.Source")
	return source.Requests{Source: w.set.shared.Source(w.resource, w.key.Namespace, object.Whole), Namespace: w.key.Namespace}
}

// refuses reports whether the server will not answer, however often it is asked.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsBadRequest(err)
}

// askAndRecord asks the server for one object as the stream would show it: rule 6 of package
// coherence.
func (w *Write) askAndRecord(ctx context.Context, st *stream.Stream, o coherence.Write, by stream.Cause) error {
	object, version, err := st.Requests().Lookup(ctx, o.Key, o.Version)
	if err != nil {
		return fmt.Errorf("ask for %s %q: %w", st.Key.Resource, o.Key, err)
	}
	made := coherence.Write{Key: o.Key, UID: o.UID, Version: version}
	if object != nil && st.Matches(object) { // it was asked for what the alternatives have in common
		if object.GetResourceVersion() != o.Version {
			by = stream.Delivered // others may have made it
		}
		made.Object, made.UID = object, object.GetUID()
	}
	s := w.set
	s.mu.Lock()
	s.journal.Commit(w.resource.Storage, made)
	s.mu.Unlock()
	st.Reach(stream.AtSettle, o.Key)
	if !w.record(st, made, by) {
		return fmt.Errorf("ask for %s %q: the answer does not say what became of it", st.Key.Resource, o.Key)
	}
	return nil
}
