package stream

import "github.com/kates-go/kates/coherence"

// Departure says how a key left one of the streams of a query. Another stream may have it by now, and
// older news of it may come yet.
type Departure struct {
	// LeftRV is the version by which it had left.
	LeftRV string
	// Last is the newest state before that, nil if none is known.
	Last Object
	// Wrote is what an own write left at version WroteRV, if that is not in the streams' order any
	// more; nil: it deleted the object. It says what Last has become, and nothing where there is
	// no Last.
	Wrote   Object
	WroteRV string
}

// And returns what two departures say together.
func (d Departure) And(other Departure) Departure {
	d.LeftRV = coherence.Newest(d.LeftRV, other.LeftRV)
	d.Last = Newer(d.Last, other.Last)
	if coherence.Newer(other.WroteRV, d.WroteRV) {
		d.Wrote, d.WroteRV = other.Wrote, other.WroteRV
	}
	return d
}

// Now returns what has become of a state; nil stays nil.
func (d Departure) Now(state Object) Object {
	if state != nil && coherence.Newer(d.WroteRV, state.GetResourceVersion()) {
		return d.Wrote
	}
	return state
}

// Departures are departures by key: the zero Departure for a key that has changed without leaving.
type Departures map[Key]Departure

// Add notes how a key left.
func (all Departures) Add(key Key, d Departure) {
	if old, ok := all[key]; ok {
		d = old.And(d)
	}
	all[key] = d
}

// leftMost bounds the departures that a listener holds.
const leftMost = 10_000

// leaves notes how a key went away, where several streams make up a query.
func (l *Listener) leaves(key Key, before, after Object) {
	switch {
	case l.Union == nil:
	case after != nil:
		delete(l.left, key)
	default:
		l.depart(key, Departure{LeftRV: l.stream.progress.asOfRV, Last: before})
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
func (l *Listener) passed(wake []func(), w coherence.Write, how landing) []func() {
	if l.Union == nil {
		return wake
	}
	d := Departure{LeftRV: w.Version}
	if how.asked {
		d.LeftRV = "" // that of an answer which came later: each stream has another one
	}
	o, _ := w.Object.(Object)
	past := !coherence.Newer(w.Version, l.stream.store.view.Position())
	if past && o != nil || how.by == deleted || l.Union.excludes(how.as) {
		d.Wrote, d.WroteRV = o, w.Version
	}
	l.depart(w.Key, d)
	if !l.all {
		known := l.dirty[w.Key]
		l.dirty[w.Key] = known
		l.most = max(l.most, len(l.dirty))
	}
	if !past || o == nil || l.QuietOwn { // other streams have the news, if it is any
		return wake
	}
	l.signal(w.Key)
	return append(wake, l.Wake)
}

// deleted notes that by a version an own deletion was done, for which the server had to be asked.
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

func (l *Listener) depart(key Key, d Departure) {
	if len(l.left) >= leftMost { // they came and went unread: what is held is bounded
		l.restart()
		return
	}
	if l.left == nil {
		l.left = make(Departures)
	}
	l.left.Add(key, d)
}
