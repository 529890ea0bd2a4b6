package stream

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// leftMost bounds the departures that a listener holds.
const leftMost = 10_000

// leaves notes, for a union, how a key left the stream, if it did. Called with the stream's lock
// held.
func (l *Listener) leaves(key Key, before, after Object) {
	switch {
	case l.Union == nil:
	case after == nil:
		l.depart(key, l.left[key].Leave(l.stream.progress.asOfRV, before))
	case !l.stream.own.givenUp: // else it may be older than the write
		delete(l.left, key)
	}
}

// landing says how a stream learned of an own write.
type landing struct {
	by cause
	// as is the object as written, whether the stream selects it or not.
	as Object
	// asked: the server was asked for the object as the stream shows it. denied is for which
	// selectors it did not have the object, of those that only the server can judge.
	asked  bool
	denied denials
	// existedRV is a version at which an object that was deleted was still there, "" if unknown.
	existedRV string
	// since is the UID of an object that has the name of a deleted one since, "" if unknown.
	since types.UID
}

// passed notes an own write of an object that the stream does not show now: it was deleted,
// another stream shows it, or the stream knows something newer (rule U4 of package coherence).
// Called with the stream's lock held.
func (l *Listener) passed(wake []func(), w coherence.Write, how landing) []func() {
	if l.Union == nil {
		return wake
	}
	fate := coherence.Elsewhere
	switch {
	case w.Object != nil: // the stream selects it
	case how.asked:
		fate = coherence.GoneBefore
	case how.by == deleted || l.Union.excludes(how.as, how.denied):
		fate = coherence.Gone
	}
	d := coherence.Passed(w, fate, how.existedRV)
	d.Since = how.since
	l.noted()
	l.depart(w.Key, d)
	if !l.whole() {
		l.note(w.Key, l.dirty[w.Key])
	}
	if d.Wrote == nil || l.QuietOwn { // other streams signal it
		return wake
	}
	l.signal(w.Key)
	return append(wake, l.Wake)
}

// settled notes an own write of which the server was asked: a deletion that was complete at a
// version, or an object that streams do not select.
func (s *stream) settled(w coherence.Write, how landing) {
	s.mu.Lock()
	wake := s.passed(nil, w, how)
	s.mu.Unlock()
	run(wake)
}

// passed tells the listeners of an own write that the stream does not show. Called with mu held.
func (s *stream) passed(wake []func(), w coherence.Write, how landing) []func() {
	if s.store.read(w.Key) != nil || !coherence.Comparable(w.Version) {
		return wake
	}
	for l := range s.listeners {
		wake = l.passed(wake, w, how)
	}
	return wake
}

// existed returns the newest version at which a stream has had a deleted object, "" if it no
// longer has the object.
func (e entry) existed(w coherence.Write) (rv string) {
	for _, o := range []Object{e.stored, e.shown} {
		if o != nil && o.GetUID() == w.UID {
			rv = coherence.Newest(rv, o.GetResourceVersion())
		}
	}
	return rv
}

// saw returns the version at which the watch has shown an own deletion that is under way, and the
// newest one at which it has shown the object meanwhile, "" if it has not.
func (s *stream) saw(w coherence.Write) (deleted, existed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.view.Deleted(w.Key, w.UID), s.store.view.Existed(w.Key, w.UID)
}

// depart adds to how a key left. Called with the stream's lock held.
func (l *Listener) depart(key Key, d coherence.Departure) {
	// Memory is bounded by objects, not by events.
	if len(l.left) >= leftMost && !l.stream.own.givenUp {
		l.restart()
		return
	}
	if l.left == nil {
		l.left = make(coherence.Departures)
	}
	l.left.Add(key, d)
}
