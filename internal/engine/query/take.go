package query

import (
	"maps"
	"slices"

	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// Take takes the changes of all streams as one batch. No two of them have one object, so nothing
// has to be decided: the batch has what theirs have.
func (u *union) Take(present bool) Batch {
	u.mu.Lock()
	var left []*stream.Listener
	if u.canSwitch() {
		left = u.switchOver()
	}
	s, next, before, k := u.now, u.next, u.life, u.Kind
	renews, breaks := !s.taken, s.breaks
	s.taken, s.breaks, u.mayTakeOver = true, 0, false
	u.to(taken) // from now on the streams change in the reader's turn
	u.mu.Unlock()
	CloseAll(left)
	if !k.Known() {
		return Batch{}
	}
	b := u.takeStreams(present && before == shown, s, renews) // what is shown may be of an earlier query
	if b.OK() {
		b.Breaks |= breaks
		b.Absent = k.query.Optional && len(s.parts) > 0 && s.gone() && (next == nil || next.gone())
		u.host.Past.raise(k.query.Name, s.position(), b.Breaks.Has(NewHistory))
	}
	u.finish(s, before, breaks, b.OK())
	return b
}

// finish ends a take. If there is no batch, the next one has all objects: some streams may have
// handed out theirs already.
func (u *union) finish(s *streams, before life, breaks Breaks, ok bool) {
	u.mu.Lock()
	if !ok {
		s.taken, s.breaks = false, s.breaks|breaks
		if before == filling {
			u.to(untaken)
		}
	}
	u.waiting, u.untilRV, u.deletion = nil, "", 0
	can := u.canSwitch()
	u.mayTakeOver = u.mayTakeOver || can
	waits := u.waiting != nil
	u.mu.Unlock()
	if waits {
		u.host.Attend()
	}
	if can {
		u.wake()
	}
}

func (u *union) Untake() {
	u.mu.Lock()
	for _, l := range u.listeners() {
		l.Untake()
	}
	u.within, u.now.taken = nil, false
	u.to(untaken)
	u.mu.Unlock()
	u.host.Attend()
}

// takeStreams takes the changes of some streams. With whole it takes all objects.
func (u *union) takeStreams(present bool, s *streams, whole bool) Batch {
	parts, spaces := s.parts, s.spaces
	if spaces == nil {
		u.within = nil // all namespaces count now
	} else {
		changed, ok := u.takeSpaces(spaces)
		if !ok {
			return Batch{}
		}
		whole = whole || changed
	}
	some, lost := false, false
	u.batches = u.batches[:0]
	defer func() { clear(u.batches) }() // they would keep objects from being freed
	for _, p := range parts {
		take := p.listener.Take
		if whole {
			take = p.listener.TakeAll
		}
		b := take()
		some, lost = some || b.Extent == audience.Some, lost || b.Extent == audience.Lost
		u.batches = append(u.batches, b)
	}
	switch {
	case lost && !present:
		return Batch{} // a first snapshot is whole, though names may have been read
	case len(parts) == 1 && spaces == nil && !whole:
		return batchOf(u.batches[0])
	}
	return u.joined(parts, whole || !some && !lost)
}

// joined returns what the streams have together. What the reader has of a stream stays while that
// stream has given up own writes. Where a stream tells everything anew, the rest of it is gone.
func (u *union) joined(parts []*part, whole bool) Batch {
	var out Batch
	if len(parts) == 0 {
		out.Extent = Some
	}
	var lost, renewed []*part
	for i, b := range u.batches {
		switch {
		case b.Extent == audience.Unknown: // the reader has nothing of it
			continue
		case b.Extent == audience.Lost:
			lost = append(lost, parts[i])
		case b.Extent == audience.Everything && !whole:
			renewed = append(renewed, parts[i])
			out.signalAll(b.Changes)
		}
		out.addStream(b)
	}
	switch {
	case !out.OK():
		return Batch{}
	case whole && lost != nil:
		out.covers = allBut(lost, u.within)
	case renewed != nil:
		out.covers = func(key object.Key) bool { return covering(renewed, key) != nil }
	}
	if whole {
		out.Extent = All
	}
	if u.within != nil {
		out.Changes = slices.DeleteFunc(out.Changes, func(c audience.Change) bool { return !u.within[c.Key.Namespace] })
	}
	return out
}

// allBut is true of all names but those that some streams can have, in the selected namespaces.
func allBut(parts []*part, within map[string]bool) func(object.Key) bool {
	return func(key object.Key) bool {
		return covering(parts, key) == nil || within != nil && !within[key.Namespace]
	}
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
	} else {
		u.within = maps.Clone(u.within) // a batch may have the old one
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
