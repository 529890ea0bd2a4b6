package query

import (
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// position returns a version that nothing is newer than that the union shows, and of what: that of
// the newest event, bookmark, list, or own write that a stream has.
func (u *union) position() (at position) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.known() {
		return at
	}
	at.storage = u.resource.Storage
	for _, p := range u.parts {
		if p.listener.Storage() == at.storage {
			rv, deletion := p.listener.Newest()
			at.rv, at.deletion = coherence.Newest(at.rv, rv), max(at.deletion, deletion)
		}
	}
	return at
}

// passed reports whether all streams have reached a version of the same resource. Those that have
// not are late: the server is asked on their behalf. A stream that is as new as the server counts,
// whatever its version: the server may have been restored. It has to be that new if a deletion that
// was shown has no version. Where contents are compared, versions say nothing.
func (u *union) passed(at position) bool {
	u.mu.Lock()
	if !u.known() || u.resource.Storage != at.storage || u.host.Streams.Config().ByContent {
		u.mu.Unlock()
		return true
	}
	var late []*stream.Listener
	for _, p := range u.parts {
		behind := coherence.Newer(at.rv, p.listener.State().PositionRV) && coherence.Newer(at.rv, p.caughtRV)
		if p.ready() && (behind || at.deletion > p.caught) {
			late = append(late, p.listener)
		}
	}
	u.waiting, u.untilRV, u.deletion = late, at.rv, at.deletion
	u.mu.Unlock()
	if late != nil {
		u.host.Attend()
	}
	return late == nil
}

// takeFor takes the first batch of a union that takes another's place.
func (u *union) takeFor(before inherited) Batch {
	u.noOlderRV = before.noOlderRV
	defer func() { u.noOlderRV = "" }()
	return u.Take(before)
}

// selects returns what the streams of a query with AnyOf select; nil for other queries.
func (u *union) selects() stream.Union {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.query.selects(u.resource)
}

// inherited is what a reader has of a query that another one of the same resource shows too. Where
// that is a union, the object stays shown while it is undecided which of its streams has it now.
// Other queries decide at once.
type inherited struct {
	Shown
	union stream.Union // nil: none
	// noOlderRV: what the reader has is no older. A state from before that is no state of an object
	// whose departure is undecided: the reader may have seen it go. "" if versions do not compare.
	noOlderRV string
}

func (i inherited) Get(key stream.Key) (stream.Object, bool) {
	if i.union == nil {
		return nil, false
	}
	o, ok := i.Shown.Get(key)
	return o, ok && i.union.Includes(o)
}

func (i inherited) Keys(yield func(stream.Key) bool) {
	if i.union != nil {
		i.Shown.Keys(yield)
	}
}

// Present is false: the first batch has all objects.
func (inherited) Present() bool { return false }
