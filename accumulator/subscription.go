package accumulator

// subscription is what one accumulator has not taken in yet of one stream: a set
// of dirty keys, so that a thousand events on one object are one key, and a slow
// reader costs nobody anything. It is guarded by its stream's lock.
type subscription struct {
	stream *stream
	// all: nothing has been taken yet; the whole store is news.
	all bool
	// dirty maps a changed key to whether the reader knows an object of that name. A
	// key that came and went unread is dropped again: what is held is bounded by
	// objects, not by events.
	dirty map[Key]bool
	// loud: some of it is worth a signal.
	loud bool
	// quietOwn: own writes do not signal.
	quietOwn bool
	// signal decides which changes are worth a signal; nil: all.
	signal Signal
	// wake tells the accumulator. It is called without locks.
	wake func()
}

// mark notes that what is shown for key went from before to after. It returns what is to
// be run for that once no lock is held, nil if nothing.
func (s *subscription) mark(key Key, before, after Object, own bool) func() {
	if s.all {
		if s.stream.synced {
			return s.wake
		}
		return nil
	}
	known, dirty := s.dirty[key]
	if !dirty {
		known = before != nil
	}
	if after == nil && !known {
		delete(s.dirty, key)
		return nil
	}
	s.dirty[key] = known
	if own && s.quietOwn {
		return nil
	}
	return s.waking(before, after)
}

// change is a key with what is true of it now: nil if there is no such object.
type change struct {
	key    Key
	object Object
}

// taken is what a take hands over.
type taken struct {
	changes []change
	// whole: it is all there is. What the reader knows besides is gone.
	whole bool
	// ok is false where the stream has nothing that may be shown yet.
	ok bool
}

// take hands over everything that has changed since the last take.
func (s *subscription) take() taken {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	switch {
	case !s.stream.synced:
		return taken{}
	case s.stream.givenUp:
		return taken{ok: !s.all}
	case s.all:
		s.all, s.loud = false, false
		return taken{changes: s.stream.everything(), whole: true, ok: true}
	}
	s.loud = false
	changes := make([]change, 0, len(s.dirty))
	for key := range s.dirty {
		changes = append(changes, change{key, s.stream.read(key)})
	}
	if len(changes) > 1024 {
		s.dirty = make(map[Key]bool) // a map keeps the room of its largest day
	} else {
		clear(s.dirty)
	}
	return taken{changes: changes, ok: true}
}

// untake makes a first take undone.
func (s *subscription) untake() {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	s.restart()
}

// restart makes everything news again, for a reader that may have been shown what the
// stream can no longer account for.
func (s *subscription) restart() {
	s.all = true
	clear(s.dirty)
}

// news reports whether there is something worth a signal.
func (s *subscription) news() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.synced && !s.stream.givenUp && (s.all || (s.loud && len(s.dirty) > 0))
}

// ready reports whether the stream has its whole first list.
func (s *subscription) ready() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.synced && (!s.all || !s.stream.givenUp)
}

// refused reports whether the server keeps refusing the first list.
func (s *subscription) refused() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return !s.stream.synced && s.stream.health.forbidden >= forbiddenForGood
}

// close leaves the stream.
func (s *subscription) close() { s.stream.leave(s) }
