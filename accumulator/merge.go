package accumulator

import (
	"slices"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/snapshot"
)

// takeField takes what is new of a field.
func (a *Accumulator) takeField(f *field) taken {
	parts, spaces, known := a.of(f)
	a.mu.Lock()
	regroup, anew := f.regroup, f.anew
	f.regroup, f.anew, f.caughtUp = false, false, false
	alone := len(parts) == 1 && spaces == nil && !regroup && f.held == nil && !f.behind(parts[0])
	a.mu.Unlock()
	var t taken
	switch {
	case !known:
		return taken{}
	case alone:
		parts[0].merged = true
		t = parts[0].sub.take()
	default:
		t = f.merge(parts, spaces, regroup, anew)
	}
	a.mu.Lock()
	f.regroup, f.anew = f.regroup || regroup && !t.ok, f.anew || anew && !t.ok
	f.waiting = f.late
	a.mu.Unlock()
	if f.late != nil {
		a.kick()
	}
	return t
}

// behind reports whether a stream has not come to where streams that are gone had been: what it brings may be
// older than what they have shown. Called with the accumulator's lock held.
func (f *field) behind(p *part) bool {
	if f.upTo != "" && !coherence.Newer(f.upTo, p.sub.position()) {
		f.upTo = ""
	}
	return f.upTo != ""
}

// untake makes a first take undone.
func (a *Accumulator) untake(f *field) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sub := range f.subscriptions() {
		sub.untake()
	}
	f.within = nil
}

// merge takes what is new of several streams as one. With whole it takes all there is; with anew it does not compare
// with what is shown.
func (f *field) merge(parts []*part, spaces *subscription, whole, anew bool) taken {
	if spaces == nil {
		f.within = nil // all count, whichever did
	} else {
		changed, ok := f.takeSpaces(spaces)
		if !ok {
			return taken{}
		}
		whole = whole || changed
	}
	out := taken{ok: len(parts) == 0, anew: anew}
	dirty := make(going) // by key, the version at which it went away, if it did
	for key, left := range f.held {
		dirty[key] = left
	}
	var ready []*part
	for _, p := range parts {
		if !p.ready() {
			continue
		}
		t := p.sub.take()
		if !t.ok {
			continue
		}
		out.ok = true
		ready = append(ready, p)
		out.anew = out.anew || t.anew
		whole = whole || t.whole && p.merged // what it had besides is gone
		p.merged = true
		for _, c := range t.changes {
			dirty[c.key] = coherence.Newest(dirty[c.key], t.left[c.key])
		}
	}
	if whole {
		out.whole = true
		for key := range f.keys {
			dirty[key] = coherence.Newest(dirty[key], "") // what no stream shows may have to stay yet
		}
		for _, p := range ready {
			p.sub.each(func(key Key) { dirty[key] = coherence.Newest(dirty[key], "") })
		}
	}
	f.held, f.late = nil, nil
	for key, left := range dirty {
		if o, known := f.newest(ready, key, left, out.anew); known {
			out.changes = append(out.changes, change{key, o})
		} else if row, had := f.row(key); had && out.whole { // it stays as it is shown
			out.changes = append(out.changes, change{key, row.Source})
		}
	}
	return out
}

// keys calls yield with every key that is held in the table.
func (f *field) keys(yield func(Key) bool) {
	if f.table == nil {
		return
	}
	for row := range f.table.All() {
		if !yield(snapshot.KeyOf(row.Source)) {
			return
		}
	}
}

// row is what is shown of a key.
func (f *field) row(key Key) (snapshot.Row, bool) {
	if f.table == nil {
		return snapshot.Row{}, false
	}
	return f.table.Get(key)
}

// takeSpaces takes in which namespaces count. It reports whether that has changed, and
// whether it is known at all.
func (f *field) takeSpaces(spaces *subscription) (changed, ok bool) {
	t := spaces.take()
	if !t.ok {
		return false, f.within != nil && spaces.ready()
	}
	if t.whole || f.within == nil {
		f.within, changed = make(map[string]bool), true
	}
	for _, c := range t.changes {
		changed = changed || f.within[c.key.Name] != (c.object != nil)
		if c.object != nil {
			f.within[c.key.Name] = true
		} else {
			delete(f.within, c.key.Name)
		}
	}
	return changed, true
}

// newest returns what is true of a key, given what each stream shows and the version at which some stream
// let go of it: the newest of them. It reports false where that cannot be told yet.
//
// Streams are late each in its own way. One shows an object in an older version than has been shown: it may
// have left there since. One let go of it, because it left its selector, and another has not come to that version:
// it may have gone there, whatever it has done there before. What is shown stays until they have come both
// to that version and to the one that is shown.
func (f *field) newest(parts []*part, key Key, left string, anew bool) (Object, bool) {
	if f.within != nil && !f.within[key.Namespace] {
		return nil, true
	}
	shown, had := f.row(key)
	if had = had && !anew; had {
		left = coherence.Newest(left, shown.Source.GetResourceVersion())
	}
	var best Object
	var late []*subscription
	for _, p := range parts {
		if !p.sub.stream.covers(key) {
			continue
		}
		o, behind, ok := p.sub.look(key, left)
		if !ok {
			return nil, false
		}
		if behind {
			late = append(late, p.sub)
		}
		if best == nil || o != nil && coherence.Newer(o.GetResourceVersion(), best.GetResourceVersion()) {
			best = o
		}
	}
	if had && late != nil && (best == nil || coherence.Newer(left, best.GetResourceVersion())) {
		f.hold(key, left, late)
		return best, best != nil && !coherence.Newer(shown.Source.GetResourceVersion(), best.GetResourceVersion())
	}
	return best, !had || best == nil || !coherence.Newer(shown.Source.GetResourceVersion(), best.GetResourceVersion())
}

// hold keeps what is shown of a key until streams that are late have come to a version.
func (f *field) hold(key Key, left string, late []*subscription) {
	if f.held == nil {
		f.held = make(going)
	}
	f.held[key] = left
	for _, sub := range late {
		if !slices.Contains(f.late, sub) {
			f.late = append(f.late, sub)
		}
	}
}
