package accumulator

import (
	"maps"
	"slices"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// takeField takes the changes of a field.
func (a *Accumulator) takeField(f *field) taken {
	if f.refs != nil {
		return a.takeNamed(f)
	}
	a.mu.Lock() // read once: the flags belong to these parts
	f.retire()
	parts, spaces, known := f.parts, f.spaces, f.known
	regroup, anew := f.regroup, f.anew
	f.regroup, f.anew, f.caughtUp = false, false, false
	alone := len(parts) == 1 && spaces == nil && !regroup && f.held.keys == nil && !f.behind(parts[0])
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

// behind reports whether a stream has not reached the position of the streams that have left.
// Until then it may deliver objects older than those shown. Called with the accumulator's lock
// held.
func (f *field) behind(p *part) bool {
	if f.upTo != "" && !coherence.Newer(f.upTo, p.sub.State().PositionRV) {
		f.upTo = ""
	}
	return f.upTo != ""
}

// untake undoes a first take.
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

// merge takes the changes of several streams as one batch. With whole it takes all objects; with
// anew it does not compare them with those shown.
func (f *field) merge(parts []*part, spaces *stream.Listener, whole, anew bool) taken {
	if spaces == nil {
		f.within = nil // all namespaces count now
	} else {
		changed, ok := f.takeSpaces(spaces)
		if !ok {
			return taken{}
		}
		whole = whole || changed
	}
	out := taken{ok: len(parts) == 0, anew: anew}
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
		whole = whole || t.whole && p.merged // the objects that the batch lacks are gone
		p.merged = true
		for _, c := range t.changes {
			f.left(c.Key, b.Left[c.Key], len(t.changes))
		}
		f.hear(&out, t)
	}
	if !out.ok {
		return taken{} // no stream has news of a held key
	}
	for _, p := range ready {
		p.sub.Reach(stream.AtMerge, Key{})
	}
	if whole {
		out.whole = true
		for key := range f.keys {
			f.left(key, coherence.Departure{}, 0) // perhaps no stream shows it, and it has to stay
		}
		for _, p := range ready {
			p.sub.EachKey(func(key Key) { f.left(key, coherence.Departure{}, 0) })
		}
	}
	f.late, f.farthest = nil, ""
	l := looks{of: f.looks.of[:0], sights: f.looks.sights[:0]}
	f.held.settle(&out, f.shown, func(key Key, left coherence.Departure) decision[coherence.Departure] {
		l.look(ready, key)
		return f.decide(key, left, &l, out.anew)
	})
	clear(l.sights[:cap(l.sights)]) // they would keep objects from being freed
	f.looks = l
	if f.lost && !f.present {
		return taken{} // a first snapshot is whole
	}
	return out
}

// left adds how a key left the streams. room is about how many such keys there will be.
func (f *field) left(key Key, d coherence.Departure, room int) {
	if f.held.keys == nil {
		f.held.keys = make(coherence.Departures, room)
	}
	coherence.Departures(f.held.keys).Add(key, d)
}

// hear adds the signals of one stream's batch to those of the union.
func (f *field) hear(out *taken, t taken) {
	if f.held.perKey = f.index != nil; !f.held.perKey {
		return
	}
	for key := range t.loud {
		f.held.tell(out, key)
	}
	for _, c := range t.changes {
		if t.whole {
			f.held.tell(out, c.Key)
		}
	}
}

// keys calls yield with every key of the table.
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

// shown returns the object from which the snapshot was made for a key.
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

// takeSpaces takes the changes of the selected namespaces. It reports whether there were any, and
// whether the namespaces are known.
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

// looks are the sights of a union's streams for one key, each from its own moment.
type looks struct {
	of     []*stream.Listener
	sights []coherence.Sight
}

// look asks the streams that cover a key.
func (l *looks) look(parts []*part, key Key) {
	l.of, l.sights = l.of[:0], l.sights[:0]
	for _, p := range parts {
		if p.sub.Covers(key) {
			l.of, l.sights = append(l.of, p.sub), append(l.sights, p.sub.Look(key))
		}
	}
}

// decide decides what the snapshot shows of a key, by the rules U1 to U7 of package coherence.
func (f *field) decide(key Key, left coherence.Departure, l *looks, anew bool) decision[coherence.Departure] {
	if f.within != nil && !f.within[key.Namespace] {
		return decision[coherence.Departure]{}
	}
	var shown coherence.Object
	if o, had := f.shown(key); had {
		shown = o
	}
	var d coherence.Decision
	if anew {
		d = coherence.DecideAnew(shown, l.sights)
	} else {
		d = coherence.Decide(shown, left, l.sights)
	}
	f.farthest = coherence.Newest(f.farthest, d.UntilRV)
	for i := range l.sights {
		f.lost = f.lost || l.sights[i].Lost
		if l.sights[i].Behind(d.UntilRV) && !slices.Contains(f.late, l.of[i]) {
			f.late = append(f.late, l.of[i])
		}
	}
	o, _ := d.Object.(Object)
	return decision[coherence.Departure]{object: o, kept: d.Kept, open: d.Open, w: d.Left}
}
