package query

import (
	"slices"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// merging is how the batches of several streams become one. It belongs to the reader's turn.
type merging struct {
	within map[string]bool           // the selected namespaces; nil: all
	held   held[coherence.Departure] // open decisions: rule U2 of package coherence
	looks  looks                     // of the current key; empty between two merges
	late   []*stream.Listener        // streams that have not reached lateRV
	lateRV string                    // the newest version that an open decision waits for
	lost   bool                      // some stream has nothing new to show
	// noOlderRV: states before a departure that are older do not count, see takeFirst. unsure: one
	// of them may count.
	noOlderRV string
	unsure    bool
}

// Take takes the changes of all streams as one batch.
func (u *union) Take(shown Shown) Batch {
	u.mu.Lock() // read once: the flags belong to these parts
	var left []*stream.Listener
	if u.mayTurn() {
		left = u.turn()
	}
	all, parts, spaces, known, optional := u.parts, u.counting(), u.spaces, u.known(), u.query.Optional
	taken := u.taken
	u.taken = true
	regroup, newHistory := u.regroup, u.newHistory
	u.regroup, u.newHistory, u.caughtUp = false, false, false
	alone := len(parts) == 1 && spaces == nil && !regroup && u.held.keys == nil
	u.mu.Unlock()
	closeAll(left)
	var b Batch
	switch {
	case !known:
		return Batch{}
	case alone:
		parts[0].merged = true
		b = u.batch(shown, parts[0].listener.Take())
	default:
		b = u.merge(shown, parts, spaces, regroup, newHistory)
	}
	b.Absent = b.OK && optional && gone(all)
	u.mu.Lock()
	u.taken = taken || b.OK
	u.regroup, u.newHistory = u.regroup || regroup && !b.OK, u.newHistory || newHistory && !b.OK
	u.waiting, u.untilRV, u.undecided, u.deletion = u.late, u.lateRV, len(u.held.keys), 0
	due := u.mayTurn()
	u.caughtUp = u.caughtUp || due
	waits := u.waiting != nil
	u.mu.Unlock()
	if waits {
		u.host.Attend()
	}
	if due {
		u.wake()
	}
	return b
}

// gone reports whether the kind of a query is gone again.
func gone(parts []*part) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p *part) bool { return !p.listener.State().Gone })
}

func (u *union) Untake() {
	u.mu.Lock()
	for _, l := range u.listeners() {
		l.Untake()
	}
	u.within, u.target, u.taken = nil, "", false
	u.aligned.Store(false)
	u.mu.Unlock()
	u.host.Attend()
}

// merge takes the changes of several streams as one batch. With whole it takes all objects; with
// newHistory it does not compare them with those shown.
func (u *union) merge(shown Shown, parts []*part, spaces *stream.Listener, whole, newHistory bool) Batch {
	if spaces == nil {
		u.within = nil // all namespaces count now
	} else {
		changed, ok := u.takeSpaces(spaces)
		if !ok {
			return Batch{}
		}
		whole = whole || changed
	}
	out := Batch{OK: len(parts) == 0, NewHistory: newHistory}
	ready := make([]*part, 0, len(parts))
	u.lost = false
	for _, p := range parts {
		if !p.ready() {
			continue
		}
		b := p.listener.Take()
		t := batchOf(b)
		if !t.OK {
			continue
		}
		out.OK, u.lost = true, u.lost || b.Extent == stream.Lost
		ready = append(ready, p)
		out.NewHistory = out.NewHistory || t.NewHistory
		whole = whole || t.Whole && p.merged // the objects that the batch lacks are gone
		p.merged = true
		for _, c := range t.Changes {
			u.left(c.Key, b.Left[c.Key], len(t.Changes))
		}
		u.hear(&out, t)
	}
	if !out.OK {
		return Batch{} // no stream has news of a held key
	}
	for _, p := range ready {
		p.listener.Reach(stream.AtMerge, stream.Key{})
	}
	if whole {
		out.Whole = true
		for key := range shown.Keys {
			u.left(key, coherence.Departure{}, 0) // perhaps no stream shows it, and it has to stay
		}
		for _, p := range ready {
			p.listener.EachKey(func(key stream.Key) { u.left(key, coherence.Departure{}, 0) })
		}
	}
	u.late, u.lateRV = nil, ""
	l := looks{of: u.looks.of[:0], sights: u.looks.sights[:0]}
	u.held.settle(&out, shown.Get, func(key stream.Key, left coherence.Departure) decision[coherence.Departure] {
		l.look(ready, key)
		return u.decide(shown, key, left, &l, out.NewHistory)
	})
	clear(l.sights[:cap(l.sights)]) // they would keep objects from being freed
	u.looks = l
	if u.lost && !shown.Present() {
		return Batch{} // a first snapshot is whole
	}
	return out
}

// batch returns the batch of the only stream.
func (m *merging) batch(shown Shown, b stream.Batch) Batch {
	if b.Extent == stream.Lost && !shown.Present() {
		return Batch{} // a first snapshot is whole, though names may have been read
	}
	return batchOf(b)
}

// left adds how a key left the streams. room is about how many such keys there will be.
func (m *merging) left(key stream.Key, d coherence.Departure, room int) {
	if m.held.keys == nil {
		m.held.keys = make(coherence.Departures, room)
	}
	coherence.Departures(m.held.keys).Add(key, d)
}

// hear adds the signals of one stream's batch to those of the union.
func (m *merging) hear(out *Batch, t Batch) {
	for key := range t.Signals {
		m.held.tell(out, key)
	}
	for _, c := range t.Changes {
		if t.Whole {
			m.held.tell(out, c.Key)
		}
	}
}

// takeSpaces takes the changes of the selected namespaces. It reports whether there were any, and
// whether the namespaces are known.
func (m *merging) takeSpaces(spaces *stream.Listener) (changed, ok bool) {
	t := batchOf(spaces.Take())
	if !t.OK {
		return false, m.within != nil && spaces.State().Ready()
	}
	if t.Whole || m.within == nil {
		m.within, changed = make(map[string]bool), true
	}
	for _, c := range t.Changes {
		changed = changed || m.within[c.Key.Name] != (c.Object != nil)
		if c.Object != nil {
			m.within[c.Key.Name] = true
		} else {
			delete(m.within, c.Key.Name)
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
func (l *looks) look(parts []*part, key stream.Key) {
	l.of, l.sights = l.of[:0], l.sights[:0]
	for _, p := range parts {
		if !p.listener.Covers(key) {
			continue
		}
		l.of, l.sights = append(l.of, p.listener), append(l.sights, p.listener.Look(key))
	}
}

// join lets streams say the same of a key that may be that of several objects.
func (l *looks) join(key stream.Key) {
	var all stream.Object
	for _, s := range l.sights {
		if s.Object != nil {
			all = stream.Together(key, all, s.Object.(stream.Object))
		}
	}
	for i := range l.sights {
		if l.sights[i].Object != nil {
			l.sights[i].Object = all
		}
	}
}

// younger returns a departure without a state that is too old to count. Own writes count (G4).
func (m *merging) younger(d coherence.Departure) coherence.Departure {
	if m.noOlderRV != "" && d.Last != nil && !coherence.Newer(d.Last.GetResourceVersion(), m.noOlderRV) {
		d.Last = nil
	}
	return d
}

// decide decides what the snapshot shows of a key, by the rules U1 to U7 of package coherence.
func (m *merging) decide(shown Shown, key stream.Key, left coherence.Departure, l *looks, newHistory bool) decision[coherence.Departure] {
	if m.within != nil && !m.within[key.Namespace] {
		return decision[coherence.Departure]{}
	}
	var had coherence.Object
	if o, ok := shown.Get(key); ok {
		had = o
	}
	left = m.younger(left)
	for i := range l.sights {
		l.sights[i].Left = m.younger(l.sights[i].Left)
	}
	var d coherence.Decision
	several := stream.Ambiguous(key) // the versions of several objects do not say which is the truth
	if several {
		l.join(key)
	}
	if newHistory || several {
		d = coherence.DecideAnew(had, l.sights)
	} else {
		d = coherence.Decide(had, left, l.sights)
	}
	m.lateRV = coherence.Newest(m.lateRV, d.UntilRV)
	for i := range l.sights {
		m.lost = m.lost || l.sights[i].Lost
		if l.sights[i].Behind(d.UntilRV) && !slices.Contains(m.late, l.of[i]) {
			m.late = append(m.late, l.of[i])
		}
	}
	m.unsure = m.unsure || m.noOlderRV != "" && d.Open && d.Object == nil && coherence.Newer(d.UntilRV, m.noOlderRV)
	o, _ := d.Object.(stream.Object)
	return decision[coherence.Departure]{object: o, kept: d.Kept, open: d.Open, w: d.Left}
}
