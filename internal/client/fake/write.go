package fake

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/object"
)

// Write is an own write under way. Call [Write.Saw], [Write.Observed] or [Write.End] when it is
// answered.
type Write struct{ request *request }

// Begin is called before a write of an object of a resource is sent.
func (s *Server) Begin(r object.Resource) *Write {
	s.mu.Lock()
	m := s.mirrorOf(r.GroupVersionResource)
	s.mu.Unlock()
	return &Write{m.beginRequest()}
}

// End ends a write that has failed. Its events are another's. It does nothing after that.
func (w *Write) End() { w.request.endRequest() }

// Saw takes in the answer to a write: the object as it was written, or nil if the write has deleted
// it. It returns the UID and the version of the state that the write has made, and a copy of what
// the object is in that state, with its stamp. That is not the answer if a reactor has answered with
// something else than the fake has stored.
func (w *Write) Saw(key object.Key, answer object.Object) (uid types.UID, version string, o object.Object) {
	return w.request.answered(key, answer, false)
}

// Observed takes in the answer to a write of somebody else, which has ended before this one began.
// So the tracker knows better.
func (w *Write) Observed(key object.Key, answer object.Object) (uid types.UID, version string, o object.Object) {
	return w.request.answered(key, answer, true)
}

func (r *request) answered(
	key object.Key, answer object.Object, past bool,
) (uid types.UID, version string, o object.Object) {
	r.drain()
	mu := &r.server.mu
	mu.Lock()
	_, found := r.finds(key, answer)
	mu.Unlock()
	var truth truth
	if !found {
		truth = r.ask(key)
	}
	mu.Lock()
	defer mu.Unlock()
	delete(r.requests, r)
	state, found := r.finds(key, answer)
	now := r.objects[key].now()
	switch {
	case found:
	case now.version > r.since:
		state = now
	case past && truth.known:
		state = r.learn(key, truth)
	default:
		state = r.wrote(key, answer, truth)
	}
	if state.object == nil {
		return state.uid, text(state.version), nil
	}
	return state.uid, text(state.version), state.stamped(state.object)
}

// wrote makes the state of an own write that no event has shown. Called with mu held.
func (m *mirror) wrote(key object.Key, answer object.Object, truth truth) state {
	m.add(key, answer)
	h := m.objects[key]
	h[len(h)-1].written = time.Now()
	m.unshown[key] = true
	if truth.known && truth.object != nil {
		m.had[key] = true
	}
	if !truth.shows(h.now()) {
		m.passed(key)
	}
	return h.now()
}

// passed is called for a state that no event of the fake is to show: one of a prompt watch would
// have come by now. What it brings next is newer. Called with mu held.
func (m *mirror) passed(key object.Key) {
	for w := range m.watchers {
		if !w.late {
			w.brought[key] = m.objects[key].now().version
		}
	}
}
