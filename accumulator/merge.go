package accumulator

import (
	"slices"

	"github.com/kates-go/kates/coherence"
)

// takeField takes what is new of a field.
func (a *Accumulator) takeField(f *field) taken {
	parts, spaces, known := a.of(f)
	a.mu.Lock()
	regroup := f.regroup
	f.regroup, f.caughtUp = false, false
	a.mu.Unlock()
	var t taken
	switch {
	case !known:
		return taken{}
	case len(parts) == 1 && spaces == nil && !regroup:
		parts[0].merged = true
		t = parts[0].sub.take()
	default:
		t = f.merge(parts, spaces, regroup)
	}
	a.mu.Lock()
	f.regroup = f.regroup || regroup && !t.ok
	f.waiting = f.late
	a.mu.Unlock()
	if f.late != nil {
		a.kick()
	}
	return t
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

// merge takes what is new of several streams as one. With whole it takes all there is.
func (f *field) merge(parts []*part, spaces *subscription, whole bool) taken {
	if spaces != nil {
		changed, ok := f.takeSpaces(spaces)
		if !ok {
			return taken{}
		}
		whole = whole || changed
	}
	out := taken{ok: len(parts) == 0}
	dirty := f.held // by key, the version at which it went away, if it did
	ready := make([]*part, 0, len(parts))
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
		if dirty == nil && len(t.changes) > 0 {
			dirty = make(going, len(t.changes))
		}
		for _, c := range t.changes {
			dirty[c.key] = coherence.Newest(dirty[c.key], t.left[c.key])
		}
	}
	if whole {
		out.whole = true
		if dirty == nil {
			dirty = make(going)
		}
		for _, p := range ready {
			p.sub.each(func(key Key) { dirty[key] = coherence.Newest(dirty[key], "") })
		}
	}
	f.held, f.late = nil, nil
	for key, left := range dirty {
		if o, known := f.newest(ready, key, left, out.anew); known {
			out.changes = append(out.changes, change{key, o})
		} else if shown, had := f.shown(key); had && out.whole { // it stays as it is
			out.changes = append(out.changes, change{key, shown})
		}
	}
	return out
}

// shown is what the snapshot was made of for a key.
func (f *field) shown(key Key) (Object, bool) {
	if f.table == nil {
		return nil, false
	}
	cursor := f.table.Cursor()
	return cursor.Source(key)
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
// have left there since. One let go of it, because it left its selector, and another, which does not have it,
// has not come to that version: it may have gone there. What is shown stays until they have.
func (f *field) newest(parts []*part, key Key, left string, anew bool) (Object, bool) {
	if f.within != nil && !f.within[key.Namespace] {
		return nil, true
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
	shown, had := f.shown(key)
	switch {
	case !had || anew:
		return best, true
	case best == nil && late != nil:
		f.hold(key, left, late)
		return nil, false
	case best == nil:
		return nil, true
	}
	return best, !coherence.Newer(shown.GetResourceVersion(), best.GetResourceVersion())
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
