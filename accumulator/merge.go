package accumulator

import (
	"maps"
	"slices"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// takeField takes what is new of a field.
func (a *Accumulator) takeField(f *field) taken {
	if f.refs != nil {
		return a.takeNamed(f)
	}
	a.mu.Lock() // once: what is to be done goes with the parts with which it is to be done
	f.retire()
	parts, spaces, known := f.parts, f.spaces, f.known
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
		t = takenOf(parts[0].sub.Take())
	default:
		t = f.merge(parts, spaces, regroup, anew)
	}
	a.mu.Lock()
	f.regroup, f.anew = f.regroup || regroup && !t.ok, f.anew || anew && !t.ok
	t.reshaped = f.reshaped
	f.taken = f.taken || t.ok
	if t.ok && !slices.ContainsFunc(f.parts, func(p *part) bool { return p.outgoing }) {
		f.reshaped = false
	}
	f.waiting, f.until = f.late, f.farthest
	a.mu.Unlock()
	if f.late != nil {
		a.kick()
	}
	return t
}

// behind reports whether a stream has not come to where streams that are gone had been: what it brings may be
// older than what they have shown. Called with the accumulator's lock held.
func (f *field) behind(p *part) bool {
	if f.upTo != "" && !coherence.Newer(f.upTo, p.sub.State().PositionRV) {
		f.upTo = ""
	}
	return f.upTo != ""
}

// untake makes a first take undone.
func (a *Accumulator) untake(f *field) {
	if f.refs != nil {
		f.refs.wakeAll()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sub := range f.subscriptions() {
		sub.Untake()
	}
	f.within, f.target = nil, ""
	f.aligned.Store(false)
	a.kick()
}

// merge takes what is new of several streams as one. With whole it takes all there is; with anew it does not compare
// with what is shown.
func (f *field) merge(parts []*part, spaces *stream.Listener, whole, anew bool) taken {
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
	dirty := f.held // zero for a key that did not go away
	ready := make([]*part, 0, len(parts))
	f.lost = false
	for _, p := range parts {
		if !p.ready() {
			continue
		}
		b := p.sub.Take()
		t := takenOf(b)
		if !t.ok {
			continue
		}
		out.ok, f.lost = true, f.lost || b.Extent == stream.Lost
		ready = append(ready, p)
		out.anew = out.anew || t.anew
		whole = whole || t.whole && p.merged // what it had besides is gone
		p.merged = true
		if dirty == nil && len(t.changes) > 0 {
			dirty = make(stream.Departures, len(t.changes))
		}
		for _, c := range t.changes {
			dirty.Add(c.Key, b.Left[c.Key])
		}
		f.hear(t)
	}
	for _, p := range ready {
		p.sub.Reach(stream.AtMerge, Key{})
	}
	if whole {
		out.whole = true
		if dirty == nil {
			dirty = make(stream.Departures)
		}
		for key := range f.keys {
			dirty.Add(key, stream.Departure{}) // what no stream shows may have to stay yet
		}
		for _, p := range ready {
			p.sub.EachKey(func(key Key) { dirty.Add(key, stream.Departure{}) })
		}
	}
	f.held, f.late, f.farthest = nil, nil, ""
	for key, left := range dirty {
		if o, known := f.newest(ready, key, left, out.anew); known {
			out.changes = append(out.changes, stream.Change{Key: key, Object: o})
		} else if shown, had := f.shown(key); had && out.whole { // it stays as it is
			out.changes = append(out.changes, stream.Change{Key: key, Object: shown})
		}
	}
	if f.lost && !f.present {
		return taken{} // a first snapshot is whole
	}
	f.tell(&out)
	return out
}

// hear notes which changes are to activate partitions.
func (f *field) hear(t taken) {
	if f.index == nil {
		return
	}
	if f.loud == nil {
		f.loud = make(map[Key]bool)
	}
	maps.Copy(f.loud, t.loud)
	for _, c := range t.changes {
		if t.whole {
			f.loud[c.Key] = true
		}
	}
}

// tell hands over what was noted, and keeps it of keys that are held.
func (f *field) tell(t *taken) {
	if f.index == nil {
		return
	}
	t.loud = f.loud
	f.loud = make(map[Key]bool)
	for key := range f.held {
		if t.whole || t.loud[key] {
			f.loud[key] = true
		}
	}
}

// keys calls yield with every key that is held in the table.
func (f *field) keys(yield func(Key) bool) {
	switch {
	case f.index != nil:
		maps.Keys(f.index.objects)(yield)
		return
	case f.table == nil:
		maps.Keys(f.last)(yield)
		return
	}
	for row := range f.table.All() {
		if !yield(object.KeyOf(row.Source)) {
			return
		}
	}
}

// shown is what the snapshot was made of for a key.
func (f *field) shown(key Key) (Object, bool) {
	switch {
	case f.index != nil:
		p, had := f.index.objects[key]
		if !had {
			return nil, false
		}
		return p.row.Source, true
	case f.table == nil:
		o, had := f.last[key]
		return o, had
	}
	cursor := f.table.Cursor()
	return cursor.Source(key)
}

// takeSpaces takes in which namespaces count. It reports whether that has changed, and
// whether it is known at all.
func (f *field) takeSpaces(spaces *stream.Listener) (changed, ok bool) {
	t := takenOf(spaces.Take())
	if !t.ok {
		return false, f.within != nil && spaces.State().Ready()
	}
	if t.whole || f.within == nil {
		f.within, changed = make(map[string]bool), true
	}
	for _, c := range t.changes {
		changed = changed || f.within[c.Key.Name] != (c.Object != nil)
		if c.Object != nil {
			f.within[c.Key.Name] = true
		} else {
			delete(f.within, c.Key.Name)
		}
	}
	return changed, true
}

// newest returns what is true of a key, given what each stream shows and how some stream let go of
// it: the newest of them. It reports false where what is shown is to stay.
//
// Streams are late each in its own way. One shows an object in an older version than has been shown: it may
// have left there since. One let go of it, because it left its selector, and another has not come to that
// version: it may have gone there, whatever it has done there before. Until all have come to that version, and
// to the one that is shown, the last state before stays true.
func (f *field) newest(parts []*part, key Key, left stream.Departure, anew bool) (Object, bool) {
	if f.within != nil && !f.within[key.Namespace] {
		return nil, true
	}
	shown, had := f.shown(key)
	if had = had && !anew; had {
		left.LeftRV = coherence.Newest(left.LeftRV, shown.GetResourceVersion())
	}
	var best Object
	seen := make(map[*stream.Listener]stream.Sight)
	for _, p := range parts {
		if !p.sub.Covers(key) {
			continue
		}
		now := p.sub.Look(key)
		if now.Lost {
			f.lost = true
			return nil, false
		}
		seen[p.sub] = now
		best = stream.Newer(best, now.Object)
		left = left.And(now.Left) // it may have left since the changes were taken
	}
	if best == nil { // is there a version at which it is in none of them?
		for _, now := range seen {
			left.LeftRV = coherence.Newest(left.LeftRV, now.ListedRV)
		}
	}
	var late []*stream.Listener
	for sub, now := range seen {
		if now.Late(left.LeftRV) {
			late = append(late, sub)
		}
	}
	if late != nil && !anew && (best == nil || coherence.Newer(left.LeftRV, best.GetResourceVersion())) {
		f.hold(key, left, late)
		best = stream.Newer(best, left.Now(left.Last))
	}
	if !had || best == nil {
		return best, !had || late == nil || left.Now(shown) == nil
	}
	return best, !coherence.Newer(shown.GetResourceVersion(), best.GetResourceVersion())
}

// hold keeps what is shown of a key until streams that are late have come to a version.
func (f *field) hold(key Key, left stream.Departure, late []*stream.Listener) {
	if f.held == nil {
		f.held = make(stream.Departures)
	}
	f.held[key] = left
	f.farthest = coherence.Newest(f.farthest, left.LeftRV)
	for _, sub := range late {
		if !slices.Contains(f.late, sub) {
			f.late = append(f.late, sub)
		}
	}
}
