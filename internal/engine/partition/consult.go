package partition

import (
	"github.com/kates-go/kates/internal/object"
)

// consult hands the moves of the i-th field, a look-up, to the partitions that have read these
// objects.
func (s *scheduler) consult(i int, moves []moved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.agenda.Running() {
		sh := &s.parts[e.Key].shares[i]
		for _, m := range moves {
			sh.note(m)
		}
	}
	for _, m := range moves {
		for part := range s.readers[i].concerned(m) {
			if !part.Runs() && part.shares[i].reread(m) {
				s.heed(part, i, m.key, m.signal, forOne)
			}
		}
	}
}

// note notes a move while a turn is under way.
func (sh *share) note(s moved) {
	m, noted := sh.meanwhile[s.key]
	if !noted {
		m.old = s.old
	}
	m.now, m.signal = s.now, m.signal || s.signal
	switch {
	case m.old.seen() == m.now.seen(): // no change since the turn began
		delete(sh.meanwhile, s.key)
	case sh.meanwhile == nil:
		sh.meanwhile = map[object.Key]meanwhile{s.key: m}
	default:
		sh.meanwhile[s.key] = m
	}
}

// reread notes a move of an object, and reports whether the last turn has read the object and the
// move changes it.
func (sh *share) reread(s moved) bool {
	old, now := sh.reads.of(s.key, s.old.seen()), sh.reads.of(s.key, s.now.seen())
	b, dirty := sh.dirty[s.key]
	if !dirty {
		b = before{in: old != nil, seen: old}
		if old != nil {
			b.shown = s.old.source()
		}
	}
	switch {
	case b.seen == now:
		delete(sh.dirty, s.key)
	case sh.dirty == nil:
		sh.dirty = map[object.Key]before{s.key: b}
	default:
		sh.dirty[s.key] = b
	}
	return old != now
}

// conclude replaces the reads of the turn before by those of the turn that ends. It activates the
// partition if an object that the turn has read has changed since it began. Called with mu held.
func (s *scheduler) conclude(part *partition) {
	for i, readers := range s.readers {
		sh := &part.shares[i]
		if readers == nil || sh.reading == nil { // a field that was added during the turn
			continue
		}
		sh.reading.end()
		readers.leave(part, sh.reads)
		readers.enter(part, sh.reading)
		sh.reads, sh.reading = sh.reading, nil
		changed := sh.meanwhile
		sh.meanwhile = nil
		for key, m := range changed {
			if sh.reread(moved{key: key, old: m.old, now: m.now}) {
				s.heed(part, i, key, m.signal, forOne)
			}
		}
	}
}

// unread forgets what a partition has read. Called with mu held.
func (s *scheduler) unread(part *partition) {
	for i, readers := range s.readers {
		if readers != nil {
			readers.leave(part, part.shares[i].reads)
		}
	}
}
