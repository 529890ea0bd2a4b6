package partition

import (
	"github.com/kates-go/kates/internal/base/shardrange"
)

// activateForced activates all partitions, though none of their objects may have changed.
func (s *scheduler) activateForced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range s.parts {
		part.forced = true
		s.activate(part, forAll)
	}
}

// activateFresh activates all partitions, also those that a change for all of them has just made.
func (s *scheduler) activateFresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range s.parts {
		if part.fresh {
			s.activate(part, forAll)
		}
	}
}

// place hands the moves of a field to the partitions of these objects.
func (s *scheduler) place(i int, moves []moved, by shardrange.Field) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range moves {
		var had, has []string
		if m.old != nil {
			had = m.old.keys
		}
		if m.now != nil {
			has = m.now.keys
		}
		for _, key := range has {
			if s.parts[key] == nil {
				s.newPart(key)
			}
			s.parts[key].count(i, 1)
		}
		s.locate(by, m)
		for _, key := range had {
			s.parts[key].count(i, -1)
		}
		if m.old.shared() || m.now.shared() {
			for _, part := range s.parts {
				s.touch(part, i, m, forAll)
			}
		} else {
			for _, key := range had {
				s.touch(s.parts[key], i, m, forOne)
			}
			for _, key := range has {
				if !m.old.owned(key) {
					s.touch(s.parts[key], i, m, forOne)
				}
			}
		}
		for _, key := range had {
			if part := s.parts[key]; part.objects == 0 {
				s.empty = append(s.empty, part)
			}
		}
	}
}

// forgetEmpty forgets the partitions whose key no object has now. A partition that has lost an
// object of one field and got one of another has always been there, and stays due.
func (s *scheduler) forgetEmpty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range s.empty {
		if s.parts[part.Key] == part {
			s.emptied(part)
		}
	}
	s.empty, s.started = nil, true
}

func (p *partition) count(i, n int) {
	p.objects += n
	p.shares[i].own += n
}

// touch is called with mu held.
func (s *scheduler) touch(part *partition, i int, m moved, r reach) {
	part.touch(i, m)
	s.heed(part, i, m.key, m.signal, r)
}

// emptied forgets a partition without objects, or makes its last turn due. Called with mu held.
func (s *scheduler) emptied(part *partition) {
	switch {
	case part.objects > 0:
	case part.seen == unseen:
		s.forget(part)
	default:
		s.activate(part, forOne)
	}
}

// forget is called with mu held.
func (s *scheduler) forget(part *partition) {
	s.unread(part)
	s.told(part)
	delete(s.parts, part.Key)
	s.agenda.Drop(&part.Entry)
}
