package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// Write is an own write under way. Begin one before the request is sent, then either Commit or
// Abandon it.
type Write struct {
	set      *Set
	resource Resource
	key      Key
	// begun are the streams that know of it, each with the write as that stream holds it.
	begun map[*stream]*coherence.Write
}

// Begin notes that a write of an object is about to be sent. The name is empty where the server is
// to make it.
func (s *Set) Begin(r Resource, key Key) *Write {
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
		if st.covers(key) {
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

// Outcome is what the server's answer to a write tells.
type Outcome struct {
	coherence.Write
	// Unknown: the answer does not tell what became of the object (rule 6): each stream asks.
	Unknown bool
}

// Commit takes in a write that has succeeded: from now on every reading of every stream shows it.
// Streams that cannot judge the answer (another version of the resource, a field that
// [Resource.Field] does not read) ask the server for the object as they would show it: one
// request each, under ctx. Where that fails the error says so; the write has succeeded
// nonetheless, and the watch will bring it.
func (w *Write) Commit(ctx context.Context, o Outcome) error {
	s := w.set
	if !w.resource.Namespaced {
		o.Key.Namespace = ""
	}
	s.mu.Lock()
	s.journal.Commit(w.resource.Storage, o.Write)
	streams := s.over(w.resource.Storage)
	s.mu.Unlock()
	how := landing{by: written}
	if o.Object == nil && !o.Unknown {
		how.by = deleted
	}
	how.as, _ = o.Object.(Object)
	streams = slices.DeleteFunc(streams, func(st *stream) bool { return !st.covers(o.Key) })
	var unsettled []error
	var asked []*stream
	var by string // the earliest version at which a watch or an answer shows the deletion done
	for _, st := range streams {
		st.reach(AtCommit, o.Key)
		if how.by == deleted {
			how.existedRV = coherence.Newest(how.existedRV, st.entry(o.Key).existed(o.Write))
		}
		if write, ok := st.judge(o, w.resource); ok && w.record(st, write, how) {
			continue
		}
		version, since, err := w.settle(ctx, st, o.Write, how)
		if err != nil {
			st.unsettle(o.Key, o.Version)
			unsettled = append(unsettled, err)
		} else if how.by == deleted {
			asked, by, how.since = append(asked, st), older(by, version), cmp.Or(since, how.since)
		}
	}
	if unsettled == nil && asked != nil {
		for _, st := range streams { // some watches may have shown it while others were asked
			saw, existedRV := st.saw(o.Write)
			by, how.existedRV = older(by, saw), coherence.Newest(how.existedRV, existedRV)
		}
		for _, st := range asked { // each of them has answered by now
			st.deleted(coherence.Write{Key: o.Key, UID: o.UID, Version: by}, landing{by: deleted, asked: true, existedRV: how.existedRV, since: how.since})
		}
	}
	s.Reach(AtLand)
	w.land(&o.Write)
	return errors.Join(unsettled...)
}

// older returns the older of two versions, either of which may be unknown ("").
func older(a, b string) string {
	if a == "" || b != "" && coherence.Newer(a, b) {
		return b
	}
	return a
}

// record hands the write to a stream, in the stream's form.
func (w *Write) record(st *stream, o coherence.Write, how landing) bool {
	if object, ok := o.Object.(Object); ok {
		o.Object = st.prepare(st.private(object))
	}
	if !st.record(o, how) {
		return false
	}
	if _, begun := w.begun[st]; begun {
		w.begun[st] = &o
	}
	return true
}

// judge turns a write into what it means for the stream: the object as the stream shows it, or
// gone from its query. It returns false where only the server can tell.
func (s *shape) judge(o Outcome, written Resource) (coherence.Write, bool) {
	w := o.Write
	if o.Unknown {
		return w, false
	}
	if w.Object == nil {
		return w, true
	}
	object, ok := w.Object.(Object)
	if !ok || written.GroupVersionResource != s.resource.GroupVersionResource {
		return w, false
	}
	selected, certain := s.selects(object)
	if !selected {
		w.Object = nil
	}
	return w, certain
}

// settle asks the server for one object as the stream would show it: rule 6 of package coherence.
// It returns the version up to which the answer speaks of what was before: that of the object, or
// of the list where there is none. Since is the UID of the object if another one was written.
func (w *Write) settle(ctx context.Context, st *stream, o coherence.Write, how landing) (version string, since types.UID, err error) {
	object, version, err := st.requests.lookup(ctx, o.Key, o.Version)
	if err != nil {
		return "", "", fmt.Errorf("ask for %s %s: %w", st.key.resource, o.Key, err)
	}
	answer := coherence.Write{Key: o.Key, UID: o.UID, Version: version}
	if object != nil {
		answer.Object, answer.UID = object, object.GetUID()
		if version = object.GetResourceVersion(); answer.UID != o.UID {
			since = answer.UID
		}
	}
	s := w.set
	s.mu.Lock()
	s.journal.Commit(w.resource.Storage, answer)
	s.mu.Unlock()
	how.asked = true
	st.reach(AtSettle, o.Key)
	w.record(st, answer, how)
	return version, since, nil
}
