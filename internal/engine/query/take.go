package query

import (
	"slices"

	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// Take takes the changes of all streams as one batch. No two of them have one object, so nothing
// has to be decided: the batch has what theirs have.
func (u *union) Take(shown Shown) Batch {
	u.mu.Lock() // read once: the flags belong to these parts
	var left []*stream.Listener
	if u.mayTurn() {
		left = u.takeOver(u.resource)
	}
	all, parts, spaces, known, optional := u.parts, u.counting(), u.spaces, u.known(), u.query.Optional
	taken := u.taken
	u.taken = true
	regroup, newHistory := u.regroup, u.newHistory
	u.regroup, u.newHistory, u.caughtUp = false, false, false
	u.mu.Unlock()
	closeAll(left)
	if !known {
		return Batch{}
	}
	b := u.takeStreams(shown, parts, spaces, regroup)
	b.Breaks |= when(b.OK() && newHistory, NewHistory)
	b.Absent = b.OK() && optional && gone(all)
	u.mu.Lock()
	u.taken = taken || b.OK()
	u.regroup, u.newHistory = u.regroup || regroup && !b.OK(), u.newHistory || newHistory && !b.OK()
	u.waiting, u.untilRV, u.deletion = nil, "", 0
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
	u.within, u.taken = nil, false
	u.mu.Unlock()
	u.host.Attend()
}

// takeStreams takes the changes of some streams. With whole it takes all objects.
func (u *union) takeStreams(shown Shown, parts []*part, spaces *stream.Listener, whole bool) Batch {
	if spaces == nil {
		u.within = nil // all namespaces count now
	} else {
		changed, ok := u.takeSpaces(spaces)
		if !ok {
			return Batch{}
		}
		whole = whole || changed
	}
	if len(parts) == 1 && spaces == nil && !whole {
		return alone(shown, parts[0].listener.Take())
	}
	part, lost := false, false
	u.batches = u.batches[:0]
	defer func() { clear(u.batches) }() // they would keep objects from being freed
	for _, p := range parts {
		take := p.listener.Take
		if whole {
			take = p.listener.TakeAll
		}
		b := take()
		part, lost = part || b.Extent == audience.Some, lost || b.Extent == audience.Lost
		u.batches = append(u.batches, b)
	}
	if lost && !shown.Present() {
		return Batch{} // a first snapshot is whole
	}
	return u.joined(shown, parts, whole || !part && !lost)
}

// alone returns the batch of the only stream. A first snapshot is whole, though names may have been
// read: it waits for a list if own writes were given up.
func alone(shown Shown, b audience.Batch) Batch {
	if b.Extent == audience.Lost && !shown.Present() {
		return Batch{}
	}
	return batchOf(b)
}

// joined returns what the streams have together.
func (u *union) joined(shown Shown, parts []*part, whole bool) Batch {
	var out Batch
	if len(parts) == 0 {
		out.Extent = Some
	}
	for i, b := range u.batches {
		switch l := parts[i].listener; {
		case b.Extent == audience.Unknown: // the reader has nothing of it
			continue
		case b.Extent == audience.Lost && whole:
			b.Changes = had(shown, l) // it stays
		case b.Extent == audience.Everything && !whole:
			b = u.replaces(b, shown, l)
		}
		out.addStream(b)
	}
	switch {
	case !out.OK():
		return Batch{}
	case whole:
		out.Extent = All
	}
	if u.within != nil {
		out.Changes = slices.DeleteFunc(out.Changes, func(c audience.Change) bool { return !u.within[c.Key.Namespace] })
	}
	return out
}

// had returns the objects of a stream that the reader has.
func had(shown Shown, of *stream.Listener) (all []audience.Change) {
	for key := range shown.Keys {
		if o, ok := shown.Get(key); ok && of.Covers(key) {
			all = append(all, audience.Change{Key: key, Object: o})
		}
	}
	return all
}

// replaces returns the changes that a batch of all objects of one stream makes, among those of
// others: what the reader has of that stream, and the batch lacks, is gone.
func (u *union) replaces(b audience.Batch, shown Shown, of *stream.Listener) audience.Batch {
	there := make(map[object.Key]bool, len(b.Changes))
	for _, c := range b.Changes {
		there[c.Key] = true
	}
	for _, c := range had(shown, of) {
		if !there[c.Key] {
			b.Changes = append(b.Changes, audience.Change{Key: c.Key})
		}
	}
	if u.host.PerKey {
		b.Signals = make(map[object.Key]bool, len(b.Changes))
		for _, c := range b.Changes {
			b.Signals[c.Key] = true
		}
	}
	return b
}

// takeSpaces takes the changes of the selected namespaces. It reports whether there were any, and
// whether the namespaces are known.
func (u *union) takeSpaces(spaces *stream.Listener) (changed, ok bool) {
	t := batchOf(spaces.Take())
	if !t.OK() {
		return false, u.within != nil && spaces.State().Ready()
	}
	if t.Whole() || u.within == nil {
		u.within, changed = make(map[string]bool), true
	}
	for _, c := range t.Changes {
		changed = changed || u.within[c.Key.Name] != (c.Object != nil)
		if c.Object != nil {
			u.within[c.Key.Name] = true
		} else {
			delete(u.within, c.Key.Name)
		}
	}
	return changed, true
}
