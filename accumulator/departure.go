package accumulator

import "github.com/kates-go/kates/coherence"

// departure is how an object left one of the streams of a query: by which version it had done so, and the
// last state before that is known. Another stream may have it by now, and older news of it may come yet.
type departure struct {
	at   string
	last Object
	// wrote is what an own write left at version wroteAt, if that is not in the streams' order any more; nil: it
	// deleted the object. It tells what last has become, and nothing where there is no last.
	wrote   Object
	wroteAt string
}

// and is what two departures say together.
func (d departure) and(other departure) departure {
	d.at = coherence.Newest(d.at, other.at)
	d.last = newer(d.last, other.last)
	if coherence.Newer(other.wroteAt, d.wroteAt) {
		d.wrote, d.wroteAt = other.wrote, other.wroteAt
	}
	return d
}

// now is what has become of a state; nil stays nil.
func (d departure) now(last Object) Object {
	if last != nil && coherence.Newer(d.wroteAt, last.GetResourceVersion()) {
		return d.wrote
	}
	return last
}

// going are departures by key. Zero for one that did not go away.
type going map[Key]departure

// add notes a key, and how it went away.
func (g going) add(key Key, d departure) {
	if old, ok := g[key]; ok {
		d = old.and(d)
	}
	g[key] = d
}

// leftMost bounds the departures that a subscription holds.
const leftMost = 10_000

// leaves notes how a key went away, where several streams make up a query.
func (s *subscription) leaves(key Key, before, after Object) {
	switch {
	case s.union == nil:
	case after != nil:
		delete(s.left, key)
	default:
		s.depart(key, departure{at: s.stream.asOf, last: before})
	}
}

// landing is how an own write came to a stream.
type landing struct {
	by cause
	// as is the object as written, whether the stream selects it or not.
	as Object
	// asked: the server was, for what the stream has of it.
	asked bool
}

// passed notes an own write of an object that the stream does not show now. Either it was a deletion, or no stream of the
// query has it any more; or the answer came when this one had gone past it, and before that the object was as written;
// or another one has it.
func (s *subscription) passed(wake []func(), w coherence.Write, how landing) []func() {
	if s.union == nil {
		return wake
	}
	d := departure{at: w.Version}
	if how.asked {
		d.at = "" // that of an answer which came later: each stream has another one
	}
	o, _ := w.Object.(Object)
	past := !coherence.Newer(w.Version, s.stream.view.Position())
	if past && o != nil || how.by == deleted || s.union.excludes(how.as) {
		d.wrote, d.wroteAt = o, w.Version
	}
	s.depart(w.Key, d)
	if !s.all {
		known := s.dirty[w.Key]
		s.dirty[w.Key] = known
		s.most = max(s.most, len(s.dirty))
	}
	if !past || o == nil || s.quietOwn { // other streams have the news, if it is any
		return wake
	}
	s.shout(w.Key)
	return append(wake, s.wake)
}

// deleted notes that by a version an own deletion was done, for which the server had to be asked.
func (s *stream) deleted(key Key, version string) {
	var wake []func()
	s.mu.Lock()
	if s.read(key) == nil && coherence.Comparable(version) {
		for sub := range s.subs {
			wake = sub.passed(wake, coherence.Write{Key: key, Version: version}, landing{by: deleted, asked: true})
		}
	}
	s.mu.Unlock()
	run(wake)
}

func (s *subscription) depart(key Key, d departure) {
	if len(s.left) >= leftMost { // they came and went unread: what is held is bounded
		s.restart()
		return
	}
	if s.left == nil {
		s.left = make(going)
	}
	s.left.add(key, d)
}
