package accumulator

import (
	"maps"

	"github.com/kates-go/kates/coherence"
)

// subscription is what one accumulator has not taken in yet of one stream: a set
// of dirty keys, so that a thousand events on one object are one key, and a slow
// reader costs nobody anything. It is guarded by its stream's lock.
type subscription struct {
	stream *stream
	// all: nothing has been taken yet; the whole store is news.
	all bool
	// again: everything is news once more, and what is dirty still is.
	again bool
	// dirty maps a changed key to whether the reader knows an object of that name: from the last take, or
	// from a look since. A key that came and went unread is dropped again: what is held is bounded by
	// objects, not by events.
	dirty map[Key]bool
	// most is how many dirty keys there have been at once: the room that the map has.
	most int
	// left holds, where several streams make up a query, how dirty keys went away; of those that did so by version
	// forgot it does not.
	left   going
	forgot string
	// anew: what the reader knows is of a history that has ended.
	anew bool
	// turned: whether there is such a resource at all has changed.
	turned bool
	// loud: some of it is worth a signal. Where the listener is keyed, louds says which of the dirty keys are, and late
	// which were, of those that were taken before that was known.
	loud        bool
	louds, late map[Key]bool
	listener
}

// listener is who subscribes. Its functions are called without locks.
type listener struct {
	// union is what the query's streams select, where others may show the same objects; else nil.
	union anyOf
	// optional: a resource that is gone leaves no field behind.
	optional bool
	// keyed: it wants to know of each key whether it is worth a signal.
	keyed bool
	// quietOwn: own writes do not signal.
	quietOwn bool
	// signal decides which changes are worth a signal; nil: all.
	signal Signal
	// wake tells that something has changed.
	wake func()
	// dirtied, if there is one, is told so in that very moment, worth a signal or not: it alone is called with the stream's lock held,
	// and takes no other for longer than a moment.
	dirtied func()
	// trouble tells that requests fail.
	trouble func()
}

// mark notes that what is shown for key went from before to after. It returns what is to
// be run for that once no lock is held, nil if nothing.
func (s *subscription) mark(key Key, before, after Object, own bool) func() {
	s.touch()
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
	if after == nil && !known && s.union == nil {
		delete(s.dirty, key)
		delete(s.louds, key)
		return nil
	}
	if !dirty {
		s.dirty[key] = known
		s.most = max(s.most, len(s.dirty))
	}
	if own && s.quietOwn {
		return nil
	}
	return s.waking(key, before, after)
}

// touch tells who wants to know at once. Called with the stream's lock held.
func (s *subscription) touch() {
	if s.dirtied != nil {
		s.dirtied()
	}
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
	left  going
	// loud are the keys that are to activate partitions. Of all there is all are.
	loud map[Key]bool
	// anew: versions do not compare with what the reader knows.
	anew bool
	// reshaped: one version of an object may look different now.
	reshaped bool
	// ok is false where the stream has nothing that may be shown yet.
	ok bool
	// lost: nor has it anything new, until it has listed again.
	lost bool
}

// take hands over everything that has changed since the last take.
func (s *subscription) take() taken {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	switch {
	case !s.stream.synced:
		return taken{}
	case s.stream.givenUp:
		return taken{ok: !s.all, lost: true}
	case s.all:
		anew := s.anew
		s.all, s.anew, s.loud, s.turned = false, false, false, false
		s.louds, s.late = nil, nil
		return taken{changes: s.stream.everything(), whole: true, anew: anew, ok: true}
	}
	t := taken{whole: s.again, left: s.left, loud: s.heard(), ok: true}
	if s.again {
		t.changes = s.stream.everything()
	} else {
		t.changes = make([]change, 0, len(s.dirty))
	}
	for key := range s.dirty {
		if o := s.stream.read(key); o == nil || !s.again {
			t.changes = append(t.changes, change{key, o})
		}
	}
	s.again, s.loud, s.turned, s.left = false, false, false, nil
	s.clean()
	return t
}

// shout notes that a change of a key is worth a signal. Called with the stream's lock held.
func (s *subscription) shout(key Key) {
	s.loud = true
	if !s.keyed {
		return
	}
	to := &s.late
	if _, dirty := s.dirty[key]; dirty {
		to = &s.louds
	}
	if *to == nil {
		*to = make(map[Key]bool)
	}
	(*to)[key] = true
}

// heeds reports whether nothing needs to be said of a change of a key: it has been said, or, unless the listener is keyed, taken.
// Called with the stream's lock held.
func (s *subscription) heeds(key Key) bool {
	if s.keyed {
		return s.louds[key] || s.late[key]
	}
	_, dirty := s.dirty[key]
	return !dirty || s.loud
}

// heard returns the keys that were worth a signal. Called with the stream's lock held.
func (s *subscription) heard() map[Key]bool {
	if s.louds == nil {
		return s.late
	}
	maps.Copy(s.louds, s.late)
	return s.louds
}

// dirtyRoom is for how many dirty keys a subscription keeps room.
const dirtyRoom = 1024

// clean leaves no key dirty. A map keeps the room of its largest day, and takes time in it to be walked or cleared.
func (s *subscription) clean() {
	s.louds, s.late = nil, nil
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
	s.all, s.again = true, false
	s.clean()
	s.left, s.forgot = nil, s.stream.view.Position()
}

// resume makes everything news again, for a reader that knows what the stream has shown: of what has left since, a union has to know.
func (s *subscription) resume() {
	if s.union == nil || s.all {
		s.restart()
		return
	}
	s.again = true
}

// news reports whether there is something worth a signal.
func (s *subscription) news() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.synced && !s.stream.givenUp && (s.all || s.again || s.optional && s.turned || s.loud && len(s.dirty)+len(s.late) > 0)
}

// ready reports whether the stream has its whole first list.
func (s *subscription) ready() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.synced && (!s.all || !s.stream.givenUp)
}

// givenUp reports whether the stream had its first list, and has given it up again before anybody took it.
func (s *subscription) givenUp() bool {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.synced && s.all && s.stream.givenUp
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

// position is how far the stream has come.
func (s *subscription) position() string {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	return s.stream.view.Position()
}

// absent reports whether there is certainly nothing: the resource is gone, or was never to be read.
func (s *subscription) absent() bool { return s.gone() || s.refused() }

// sight is what a stream says of a key at one moment.
type sight struct {
	object Object
	// known is the version that this is true of at least; unbounded: of every later one.
	known     string
	unbounded bool
	// listed: what came and went shortly before this version is not known.
	listed string
	// left is how it went away, if the reader has not taken that in yet.
	left departure
	// lost: the stream cannot account for it.
	lost bool
}

// late reports whether the stream has not come to a version.
func (s sight) late(version string) bool { return !s.unbounded && coherence.Newer(version, s.known) }

// look returns what is true of a key. The reader may show it: where the key has changed since the last
// take, the reader knows an object of that name from now on, and mark reports that it goes.
func (s *subscription) look(key Key) sight {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	o := s.stream.read(key)
	if _, dirty := s.dirty[key]; dirty && o != nil {
		s.dirty[key] = true
	}
	known, bounded := s.stream.view.Known(key)
	return sight{o, known, !bounded, coherence.Newest(s.stream.listed, s.forgot), s.left[key], s.stream.givenUp}
}

// track starts to note what changes, for a reader that will take everything in later. It returns the
// position from which on it does.
func (s *subscription) track() string {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	s.all = false
	return s.stream.view.Position()
}

// each calls f with the key of everything that may be shown, or has left since the last take. f must not block.
func (s *subscription) each(f func(Key)) {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	for key := range s.stream.store {
		f(key)
	}
	for key := range s.stream.view.Keys {
		f(key)
	}
	for key := range s.dirty {
		f(key)
	}
}

// close leaves the stream.
func (s *subscription) close() { s.stream.leave(s) }
