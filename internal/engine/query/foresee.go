package query

import (
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/object"
)

// coming are the objects of a source's successor, which nobody has yet. Their names are read
// ahead: the switch waits until each object that they name is known to be present or absent. So
// the reader gets all objects of the successor at once, with what they name. It belongs to the
// reader's turn, but known.
type coming struct {
	of      *union
	objects map[object.Key]nameable
	known   atomic.Bool
}

func (s *source) Settled() bool { return s.Running.Settled() && s.coming.known.Load() }

func (s *source) Try() bool {
	s.foresee()
	return s.Settled() && s.Running.Try()
}

// successor returns the union that waits to replace the source's own, nil if there is none.
func (s *source) successor() *union {
	r, ok := s.Running.(*replaceable)
	if !ok {
		return nil
	}
	_, next := r.both()
	return next
}

// foresee reads the names in the objects of a successor. It returns how long the switch may still
// wait for the objects that they name, 0 if it does not.
func (s *source) foresee() (patience time.Duration) {
	next := s.successor()
	s.forgetComing(next)
	if next == nil || next.Phase() < Complete {
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
	s.coming.known.Store(patience == 0)
	return patience
}

// forgetComing forgets the objects of a former successor.
func (s *source) forgetComing(next *union) {
	if s.coming.of == next {
		return
	}
	for _, w := range s.coming.objects {
		s.ahead(w, -1)
	}
	s.coming.of, s.coming.objects = nil, nil
	s.coming.known.Store(false)
}

// ahead is count for objects that nobody has yet.
func (s *source) ahead(w nameable, by int) {
	for i, keys := range w.names {
		for _, key := range keys {
			s.to[i].to.count(key, 0, by)
		}
	}
}
