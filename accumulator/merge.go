package accumulator

import (
	"github.com/kates-go/kates/coherence"
)

// leavers remembers the version that was last shown of objects that have left a field of several
// streams, until each stream has passed it: a stream that is late must not bring them back.
type leavers map[Key]coherence.Write

// leaversMost bounds how many are remembered.
const leaversMost = 10_000

// takeField takes what is new of a field.
func (a *Accumulator) takeField(f *field) taken {
	parts, spaces, _ := a.of(f)
	a.mu.Lock()
	regroup := f.regroup
	f.regroup = false
	a.mu.Unlock()
	var t taken
	switch {
	case len(parts) == 0 && spaces == nil:
		return taken{}
	case len(parts) == 1 && spaces == nil && !regroup:
		parts[0].merged = true
		t = parts[0].sub.take()
	default:
		t = f.merge(parts, spaces, regroup)
	}
	if !t.ok {
		a.mu.Lock()
		f.regroup = f.regroup || regroup
		a.mu.Unlock()
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
	dirty := make(map[Key]bool)
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
			dirty[c.key] = true
		}
	}
	if whole {
		out.whole = true
		for _, p := range ready {
			p.sub.each(func(key Key) { dirty[key] = true })
		}
	}
	f.pass(ready)
	for key := range dirty {
		if o, known := f.newest(ready, key, out.anew); known {
			out.changes = append(out.changes, change{key, o})
		} else if out.whole { // it stays as it is shown
			if row, had := f.table.Get(key); had {
				out.changes = append(out.changes, change{key, row.Source})
			}
		}
	}
	return out
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

// newest returns what is true of a key, given what each stream shows: the newest of them. It
// reports false where that cannot be told: what is shown is newer, and some stream is late.
func (f *field) newest(parts []*part, key Key, anew bool) (Object, bool) {
	if f.within != nil && !f.within[key.Namespace] {
		return nil, true
	}
	var best Object
	covering := 0
	for _, p := range parts {
		if !p.sub.stream.covers(key) {
			continue
		}
		covering++
		o, ok := p.sub.look(key)
		if !ok {
			return nil, false
		}
		if best == nil || o != nil && coherence.Newer(o.GetResourceVersion(), best.GetResourceVersion()) {
			best = o
		}
	}
	if covering < 2 || anew {
		delete(f.left, key)
		return best, true
	}
	var shown Object
	if f.table != nil {
		if row, had := f.table.Get(key); had {
			shown = row.Source
		}
	}
	switch {
	case best == nil:
		if shown != nil {
			f.leave(key, shown)
		}
		return nil, true
	case shown != nil:
		return best, !coherence.Newer(shown.GetResourceVersion(), best.GetResourceVersion())
	}
	if gone, ok := f.left[key]; ok && !coherence.Newer(best.GetResourceVersion(), gone.Version) {
		return nil, true
	}
	delete(f.left, key)
	return best, true
}

// leave remembers an object that leaves.
func (f *field) leave(key Key, shown Object) {
	if f.left == nil || len(f.left) >= leaversMost {
		f.left = make(leavers)
	}
	f.left[key] = coherence.Write{Key: key, UID: shown.GetUID(), Version: shown.GetResourceVersion()}
}

// pass forgets what every stream has passed.
func (f *field) pass(parts []*part) {
	if len(f.left) == 0 {
		return
	}
	for key, gone := range f.left {
		late := false
		for _, p := range parts {
			late = late || p.sub.stream.covers(key) && coherence.Newer(gone.Version, p.sub.position())
		}
		if !late {
			delete(f.left, key)
		}
	}
}
