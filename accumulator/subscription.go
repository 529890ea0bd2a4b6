package accumulator

import "github.com/kates-go/kates/coherence"

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
	// most is how many dirty keys there have been at once: the room that the map has.
	most int
	// left holds, where several streams make up a query, the version at which a dirty key went away.
	left going
	// anew: what the reader knows is of a history that has ended.
	anew bool
	// loud: some of it is worth a signal.
	loud bool
	listener
}

// listener is who subscribes. Its functions are called without locks.
type listener struct {
	// union: other streams may show the same objects.
	union bool
	// quietOwn: own writes do not signal.
	quietOwn bool
	// signal decides which changes are worth a signal; nil: all.
	signal Signal
	// wake tells that something has changed.
	wake func()
	// trouble tells that requests fail.
	trouble func()
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
		delete(s.left, key)
		delete(s.dirty, key)
		return nil
	}
	if !dirty {
		s.dirty[key] = known
		s.most = max(s.most, len(s.dirty))
	}
	s.leaves(key, after == nil)
	if own && s.quietOwn {
		return nil
	}
	return s.waking(before, after)
}

// leaves notes at which version a key went away, where several streams make up a query.
func (s *subscription) leaves(key Key, gone bool) {
	switch {
	case !gone:
		delete(s.left, key)
	case s.union && s.left == nil:
		s.left = going{key: s.stream.asOf}
	case s.union:
		s.left[key] = s.stream.asOf
	}
}

// change is a key with what is true of it now: nil if there is no such object.
type change struct {
	key    Key
	object Object
}

// going is a version at which objects went away, by key.
type going map[Key]string

// taken is what a take hands over.
type taken struct {
	changes []change
	// whole: it is all there is. What the reader knows besides is gone.
	whole bool
	left  going
	// anew: versions do not compare with what the reader knows.
	anew bool
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
		anew := s.anew
		s.all, s.anew, s.loud = false, false, false
		return taken{changes: s.stream.everything(), whole: true, anew: anew, ok: true}
	}
	s.loud = false
	left := s.left
	s.left = nil
	changes := make([]change, 0, len(s.dirty))
	for key := range s.dirty {
		changes = append(changes, change{key, s.stream.read(key)})
	}
	s.clean()
	return taken{changes: changes, left: left, ok: true}
}

// dirtyRoom is for how many dirty keys a subscription keeps room.
const dirtyRoom = 1024

// clean leaves no key dirty. A map keeps the room of its largest day, and takes time in it to be walked or cleared.
func (s *subscription) clean() {
	if s.most > dirtyRoom {
		s.dirty, s.most = make(map[Key]bool), 0
	} else {
		clear(s.dirty)
	}
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
	s.clean()
	s.left = nil
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

// refused reports whether there is certainly no first list: the server keeps refusing it, or there is
// no such resource.
func (s *subscription) refused() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return !s.stream.synced && (s.stream.health.forbidden >= forbiddenForGood || s.stream.health.gone)
}

// missing reports whether the server says that there is no such resource.
func (s *subscription) missing() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.health.state == Missing
}

// gone reports whether it is certain that there is no such resource.
func (s *subscription) gone() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.health.gone
}

// look returns what is true of a key, and false where the stream cannot account for it. Until is the
// version that it must have come to, if it shows nothing; late reports that it has not.
func (s *subscription) look(key Key, until string) (o Object, late, ok bool) {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	known, bounded := s.stream.view.Known(key)
	return s.stream.read(key), bounded && coherence.Newer(until, known), !s.stream.givenUp
}

// each calls f with the key of everything that may be shown. f must not block.
func (s *subscription) each(f func(Key)) {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	for key := range s.stream.store {
		f(key)
	}
	for key := range s.stream.view.Keys {
		f(key)
	}
}

// close leaves the stream.
func (s *subscription) close() { s.stream.leave(s) }
