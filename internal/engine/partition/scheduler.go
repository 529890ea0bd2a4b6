package partition

import (
	"maps"
	"slices"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/agenda"
	"github.com/kates-go/kates/internal/loops/attempts"
)

// scheduler has the partitions, and says which of them gets the next turn. It knows nothing of
// queries and snapshots: moves tell it which partitions an object has left and joined.
//
//	moves ──place, consult──▶ partitions ──activate──▶ agenda ──next──▶ turn
//	                              ▲                                      │
//	                              └─────────────────end──────────────────┘
//
// A partition that is due without a change that matters gets no turn.
type scheduler struct {
	backoff attempts.Backoff // set once

	mu    lockorder.Mutex[lockorder.Scheduler] // guards what follows
	parts map[string]*partition
	// agenda has the keys of parts.
	agenda *agenda.Agenda
	// readers are, for each field that is a look-up, the partitions that have read it; nil for
	// other fields. The reads of a running turn are known only when it ends, so each change of a
	// look-up is noted for all running turns.
	readers []*readers
	hushed  []hushed // for each field
	// places is how many fields there may be at most.
	places int
	// empty are partitions that had no objects when the changes of one field were placed. Those of
	// another field may bring some.
	empty   []*partition
	started bool // all that there was at first is placed
	stale   bool // since changes were last taken, a turn has ended, or keys were activated
}

func newScheduler(places int, b attempts.Backoff, d agenda.Debounce) *scheduler {
	return &scheduler{backoff: b, parts: make(map[string]*partition), agenda: agenda.New(d), places: places}
}

// expect makes partitions of keys that had turns before. The first changes bring their objects, or
// they are gone. It is called before any change is placed.
func (s *scheduler) expect(keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if s.parts[key] != nil {
			continue
		}
		part := s.newPart(key)
		part.seen = withObjects
		s.empty = append(s.empty, part)
	}
}

// newPart makes the partition of a key. Called with mu held.
func (s *scheduler) newPart(key string) *partition {
	part := &partition{Entry: agenda.Entry{Key: key}, fresh: true, shares: make([]share, s.places)}
	s.parts[key] = part
	return part
}

// extend notes which fields are look-ups, up to a number of them.
func (s *scheduler) extend(fields int, lookup func(i int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.readers); i < fields; i++ {
		var by *readers
		if lookup(i) {
			by = newReaders()
		}
		s.readers, s.hushed = append(s.readers, by), append(s.hushed, make(hushed))
	}
}

// next hands out the next key. It returns nil if there is none, or if the key has no reason for a
// turn: nobody asked for it, and nothing has changed.
func (s *scheduler) next(changed func(*partition) bool) *Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ready := s.agenda.Next()
	if e == nil {
		return nil
	}
	part := s.parts[e.Key]
	// A key that is gone may have the same objects as before, which all partitions have now.
	gone := part.objects == 0 && part.seen == withObjects
	if !part.forced && !gone && !changed(part) {
		s.agenda.Done(e)
		return nil
	}
	s.told(part)
	t := &Turn{Key: e.Key, Gone: part.objects == 0, Attempt: e.Attempt(), Ready: ready, part: part}
	part.forced, part.seen = false, withObjects
	if t.Gone {
		part.seen = withoutObjects
	}
	return t
}

// end ends the turn of a partition with an outcome.
func (s *scheduler) end(part *partition, outcome func(*scheduler, *partition)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude(part)
	s.stale = true
	outcome(s, part)
}

// succeed is the outcome of a turn without an error. If the partition is gone, this was its last
// turn. Called with mu held.
func (s *scheduler) succeed(part *partition) {
	s.keep(part)
	if part.seen == withoutObjects {
		part.seen = unseen
		s.emptied(part)
	}
}

// keep is the outcome of a turn that keeps a partition that is gone. Called with mu held.
func (s *scheduler) keep(part *partition) { s.agenda.Done(&part.Entry) }

// fail is the outcome of a turn with an error. Called with mu held.
func (s *scheduler) fail(part *partition) { s.rest(part, s.backoff.After(part.Attempt())) }

// rest is the outcome of a turn that must be repeated after some time. Called with mu held.
func (s *scheduler) rest(part *partition, after time.Duration) {
	part.forced = true
	s.agenda.Rest(&part.Entry, after)
}

// taking notes that changes are about to be taken.
func (s *scheduler) taking() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = false
}

// isStale reports whether a turn has ended, or keys were activated, since changes were last taken.
func (s *scheduler) isStale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale
}

// release makes the keys ready that wait for a signal, given at this time, and are quiet, in
// order.
func (s *scheduler) release(signal time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agenda.Release(signal)
}

// pending reports whether a key is ready.
func (s *scheduler) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agenda.Pending()
}

func (s *scheduler) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted()
}

// sorted returns the keys of the partitions, in order. Called with mu held.
func (s *scheduler) sorted() []string { return slices.Sorted(maps.Keys(s.parts)) }

// any reports whether one of the partitions is as asked for.
func (s *scheduler) any(is func(*partition) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range s.parts {
		if is(part) {
			return true
		}
	}
	return false
}

func (s *scheduler) activateKeys(keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.force(keys, forOne)
}

func (s *scheduler) activateAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.force(s.sorted(), forAll)
}

// force is called with mu held.
func (s *scheduler) force(keys []string, r reach) {
	s.stale = true
	for _, key := range keys {
		if part := s.parts[key]; part != nil {
			part.forced = true
			s.putAhead(part, r)
			s.agenda.MakeReady(&part.Entry)
		}
	}
}

// reach says whom a change concerns.
type reach bool

const (
	forOne reach = false // some keys
	forAll reach = true  // every key
)

// putAhead puts a partition ahead of those that are due only because all are. Called with mu held.
func (s *scheduler) putAhead(part *partition, r reach) {
	if r == forOne && s.started {
		s.agenda.PutAhead(&part.Entry)
	}
}

// activate makes a partition due at the next signal, or, with a debounce, once it is quiet. The
// first turns do not wait for quiet. Called with mu held.
func (s *scheduler) activate(part *partition, r reach) {
	s.putAhead(part, r)
	if s.started {
		s.agenda.MakeDueOnceQuiet(&part.Entry)
	} else {
		s.agenda.MakeDue(&part.Entry)
	}
}

// close stops the timers at the end.
func (s *scheduler) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agenda.Close()
}
