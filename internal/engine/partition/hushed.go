package partition

import (
	"github.com/kates-go/kates/internal/object"
)

// hushed has, for each object of a field, the partitions with a quiet change of the object since
// their last turn. A signal for that change may still come. The object may have other keys by then:
// so the partitions are those of the time of the change. The scheduler's lock guards it.
type hushed map[object.Key]map[*partition]bool

// note notes whether there is such a change of an object for a partition.
func (h hushed) note(key object.Key, part *partition, is bool) {
	if !is {
		if delete(h[key], part); len(h[key]) == 0 {
			delete(h, key)
		}
		return
	}
	if h[key] == nil {
		h[key] = make(map[*partition]bool)
	}
	h[key][part] = true
}

// heed activates a partition for the change of an object in the i-th field, if that is worth a
// signal. Called with mu held.
func (s *scheduler) heed(part *partition, i int, key object.Key, signal bool, r reach) {
	if signal {
		s.activate(part, r)
		return
	}
	_, dirty := part.shares[i].dirty[key]
	s.hushed[i].note(key, part, dirty)
}

// told forgets what is hushed for a partition: it has its turn, or is forgotten. Called with mu
// held.
func (s *scheduler) told(part *partition) {
	for i, h := range s.hushed {
		if len(h) == 0 {
			continue
		}
		for key := range part.shares[i].dirty {
			h.note(key, part, false)
		}
	}
}

// signal activates the partitions for which one of these objects of the i-th field has changed:
// that was worth a signal after all.
func (s *scheduler) signal(i int, keys map[object.Key]bool, r reach) {
	if len(keys) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.agenda.Running() {
		s.parts[e.Key].shares[i].signal(keys)
	}
	for key := range keys {
		for part := range s.hushed[i][key] {
			s.activate(part, r)
		}
		delete(s.hushed[i], key)
	}
}

// quiet returns the objects of the i-th field whose changes were worth no signal.
func (s *scheduler) quiet(i int) map[object.Key]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[object.Key]bool)
	for e := range s.agenda.Running() {
		for key := range s.parts[e.Key].shares[i].meanwhile {
			all[key] = true
		}
	}
	for key := range s.hushed[i] {
		all[key] = true
	}
	return all
}
