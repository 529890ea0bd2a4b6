package stream

import "github.com/kates-go/kates/coherence"

// leftMost bounds the departures that a listener holds.
const leftMost = 10_000

// leaves notes how a key left the stream, if it did, for a union. Called with the stream's lock held.
func (l *Listener) leaves(key Key, before, after Object) {
	switch {
	case l.Union == nil:
	case after == nil:
		l.depart(key, l.left[key].Leave(l.stream.progress.asOfRV, before))
	case !l.stream.own.givenUp: // else it may be older than what was given up
		delete(l.left, key)
	}
}

// landing says how an own write came to a stream.
type landing struct {
	by cause
	// as is the object as written, whether the stream selects it or not.
	as Object
	// asked: the server was asked for the object as the stream shows it.
	asked bool
}

// passed notes an own write of an object that the stream does not show now: it was deleted, another
// stream shows it, or the stream knows something newer (rule U4 of package coherence).
// Called with the stream's lock held.
func (l *Listener) passed(wake []func(), w coherence.Write, how landing) []func() {
	if l.Union == nil {
		return wake
	}
	fate := coherence.Elsewhere
	switch {
	case how.asked:
		fate = coherence.GoneBefore
	case how.by == deleted || l.Union.excludes(how.as):
		fate = coherence.Gone
	}
	d := coherence.Passed(w, fate)
	l.depart(w.Key, d)
	if !l.all {
		known := l.dirty[w.Key]
		l.dirty[w.Key] = known
		l.most = max(l.most, len(l.dirty))
	}
	if d.Wrote == nil || l.QuietOwn { // if it is news, it is that of other streams
		return wake
	}
	l.signal(w.Key)
	return append(wake, l.Wake)
}

// deleted notes an own deletion, for which the server was asked, and which was done by a version.
func (s *stream) deleted(key Key, version string) {
	var wake []func()
	s.mu.Lock()
	if s.read(key) == nil && coherence.Comparable(version) {
		for l := range s.listeners {
			wake = l.passed(wake, coherence.Write{Key: key, Version: version}, landing{by: deleted, asked: true})
		}
	}
	s.mu.Unlock()
	run(wake)
}

// depart adds to how a key left. Called with the stream's lock held.
func (l *Listener) depart(key Key, d coherence.Departure) {
	if len(l.left) >= leftMost && !l.stream.own.givenUp { // memory is bounded by objects, not by events
		l.restart()
		return
	}
	if l.left == nil {
		l.left = make(coherence.Departures)
	}
	l.left.Add(key, d)
}
