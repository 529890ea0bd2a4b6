package refs

import (
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
)

// coming are the objects of a query that is to take a source's place, which nobody has yet. Their
// names are read ahead: the switch waits until each object that they name is known to be present or
// absent. So the reader gets all objects of that query at once, with what they name. It belongs to
// the reader's turn, but known.
type coming struct {
	of      query.Running
	objects map[object.Key]nameable
	known   atomic.Pointer[query.Running] // the query that need not wait
}

// foresees reports whether all that the objects of a query name is known.
func (s *reading) foresees(q query.Running) bool {
	known := s.coming.known.Load()
	return known != nil && *known == q
}

// Foresee reads the names in the objects of a query that is to take the place of another one, if
// that has any. It belongs to the reader's turn.
func Foresee(former, next query.Running) {
	if s, names := former.(*source); names {
		s.foresee(next)
	}
}

// foresee reads the names in the objects of a query that is to take the source's place. It returns
// how long the switch may still wait for the objects that they name, 0 if it does not.
func (s *reading) foresee(next query.Running) (patience time.Duration) {
	s.forgetComing(next)
	if next == nil || next.Phase() < query.Complete {
		return 0
	}
	found := make(map[object.Key]object.Object)
	next.Each("", func(key object.Key, o object.Object) { found[key] = o })
	if s.coming.objects == nil {
		s.coming.of, s.coming.objects = next, make(map[object.Key]nameable, len(found))
	}
	for key, o := range found {
		old, read := s.coming.objects[key]
		if read && old.object == o {
			continue
		}
		before := old.names
		if !read {
			before = s.released[key].names
		}
		now := s.namesIn(o, before)
		s.ahead(now, 1)
		s.ahead(old, -1)
		s.coming.objects[key] = now
	}
	for key, old := range s.coming.objects {
		if found[key] == nil {
			s.ahead(old, -1)
			delete(s.coming.objects, key)
		}
	}
	for _, w := range s.coming.objects {
		patience = max(patience, s.patience(w))
	}
	var known *query.Running
	if patience == 0 {
		known = &next
	}
	s.coming.known.Store(known)
	return patience
}

// forgetComing forgets the objects of a query that is no longer to take the place.
func (s *reading) forgetComing(next query.Running) {
	if s.coming.of == next {
		return
	}
	for _, w := range s.coming.objects {
		s.ahead(w, -1)
	}
	s.coming.of, s.coming.objects = nil, nil
	s.coming.known.Store(nil)
}

// ahead is count for objects that nobody has yet.
func (s *reading) ahead(w nameable, by int) {
	for i, keys := range w.names {
		for _, key := range keys {
			s.to[i].to.count(key, 0, by)
		}
	}
}

// held keeps objects whose newest state may not be shown yet. Such an object waits until it is
// known whether the objects that it names exist. With each batch, every held object is checked
// again. Until then the reader keeps the state before, also in a batch of all objects. The signal
// comes when the object is shown.
type held struct {
	// perKey: the batch says which keys are worth a signal.
	perKey bool
	keys   map[object.Key]nameable
	// signals are the keys whose change is worth a signal.
	signals map[object.Key]bool
}

// add holds a key back, until it is decided.
func (h *held) add(key object.Key, w nameable) {
	if h.keys == nil {
		h.keys = make(map[object.Key]nameable)
	}
	h.keys[key] = w
}

// signal notes that a change of a key is worth a signal.
func (h *held) signal(key object.Key) {
	if h.signals == nil {
		h.signals = make(map[object.Key]bool)
	}
	h.signals[key] = true
}

// drop drops a key without a decision.
func (h *held) drop(key object.Key) {
	delete(h.keys, key)
	delete(h.signals, key)
}

// settle releases each key that need not wait, and adds the change to a batch. It reports whether
// one of them is worth a signal. release returns false for a key that still waits.
func (h *held) settle(out *query.Batch, shown func(object.Key) (object.Object, bool), release func(object.Key, nameable) bool) (news bool) {
	for key, w := range h.keys {
		o, had := shown(key)
		if release(key, w) {
			out.Extent = max(out.Extent, query.Some)
			out.Changes = append(out.Changes, audience.Change{Key: key, Object: w.object})
			if h.signals[key] {
				news = true
				h.addSignal(out, key)
			}
			h.drop(key)
			continue
		}
		if had && out.Gone(key) {
			out.Changes = append(out.Changes, audience.Change{Key: key, Object: o})
		}
		if h.perKey && (out.Whole() || out.Signals[key]) { // the change may come later
			h.signal(key)
		}
	}
	if len(h.keys) == 0 {
		h.keys, h.signals = nil, nil // a large map keeps its memory
	}
	return news
}

// addSignal adds to a batch that a key is worth a signal.
func (h *held) addSignal(out *query.Batch, key object.Key) {
	if h.perKey {
		out.AddSignal(key)
	}
}
