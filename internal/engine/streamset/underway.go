package streamset

import (
	"context"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// underWay are the own writes of a set that have begun and not ended. The lock of the set guards
// it.
type underWay map[object.Key]map[*Write]bool

func (u underWay) add(w *Write) {
	if u[w.key] == nil {
		u[w.key] = make(map[*Write]bool)
	}
	u[w.key][w] = true
}

func (u underWay) remove(w *Write) {
	if delete(u[w.key], w); len(u[w.key]) == 0 {
		delete(u, w.key)
	}
}

// wakeAwaiting ends the waits for a write. All streams show what became of the object by now, or
// the watch will bring it.
func (w *Write) wakeAwaiting() {
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	w.set.underWay.remove(w)
	if w.ended != nil {
		close(w.ended)
		w.ended = nil
	}
}

// Await waits while an own write that is under way may be why some streams show an object at a
// version, and others do not yet. A call that finds an object as it is wanted, and sends nothing,
// calls Await before it returns the object: then every reading shows the object at that version,
// or a newer one. Await sends nothing. In most cases nothing is under way, and it does not wait.
// The error is that of ctx.
func (s *Set) Await(ctx context.Context, r object.Resource, key object.Key, rv string) error {
	if !r.Namespaced {
		key.Namespace = ""
	}
	for _, ended := range s.othersUnderWay(r, key, rv) {
		if !s.behind(r, key, rv) {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// othersUnderWay returns channels that are closed when the present writes of an object end that
// may have made a version of it.
func (s *Set) othersUnderWay(r object.Resource, key object.Key, rv string) (all []<-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.underWay[key] {
		if w.resource.Storage != r.Storage || coherence.Comparable(w.knownRV) && !coherence.Newer(rv, w.knownRV) {
			continue
		}
		if w.ended == nil {
			w.ended = make(chan struct{})
		}
		all = append(all, w.ended)
	}
	return all
}

// behind reports whether a stream that may have an object does not know a version of it yet.
func (s *Set) behind(r object.Resource, key object.Key, rv string) bool {
	s.mu.Lock()
	streams := s.over(r.Storage)
	s.mu.Unlock()
	for _, st := range streams {
		if st.Covers(key) && coherence.Newer(rv, st.Entry(key).ShownRV) {
			return true
		}
	}
	return false
}
