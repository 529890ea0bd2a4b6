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
	return u.newest()
}

// newest is position, called with mu held.
func (u *union) newest() (at position) {
	if !u.known() {
		return at
	}
	at.storage = u.resource.Storage
	for _, p := range u.counting() {
		if p.listener.Storage() == at.storage {
			rv, deletion := p.listener.Newest()
			at.rv, at.deletion = coherence.Newest(at.rv, rv), max(at.deletion, deletion)
		}
	}
	return at
}

// passed reports whether all streams have reached a version of the same resource. Those that have
// not are late: the server is asked on their behalf.
func (u *union) passed(at position) bool {
	u.mu.Lock()
	late := u.behind(u.counting(), at)
	more := u.await(late, at)
	u.mu.Unlock()
	if more {
		u.host.Attend()
	}
	return late == nil
}

// behind returns the streams of some parts that have not reached a version. A stream that is as
// new as the server counts, whatever its version: the server may have been restored. It has to be
// that new if a deletion that was shown has no version. Where contents are compared, versions say
// nothing. Called with mu held.
func (u *union) behind(parts []*part, at position) (late []*stream.Listener) {
	if !u.known() || u.resource.Storage != at.storage || u.host.Streams.Config().ByContent {
		return nil
	}
	for _, p := range parts {
		older := coherence.Newer(at.rv, p.listener.State().PositionRV) && coherence.Newer(at.rv, p.caughtRV)
		if p.ready() && (older || at.deletion > p.caught) {
			late = append(late, p.listener)
		}
	}
	return late
}

// takeFirst takes the first batch of a union that takes another's place. What the reader has of
// the old one is no older than a version, "" if versions do not compare. A state from before that
// is no state of an object whose departure is undecided: the reader may have seen it go. Nor may
// it be left out, if it may have gone after that version: then there is no batch until it is
// decided.
func (u *union) takeFirst(noOlderRV string) Batch {
	u.noOlderRV, u.unsure = noOlderRV, false
	defer func() { u.noOlderRV = "" }()
	b := u.Take(nothing{}) // what is shown says nothing about the objects of another query
	if u.unsure {
		u.Untake()
		return Batch{}
	}
	return b
}

// nothing is what a reader has of a query before its first batch.
type nothing struct{}

func (nothing) Get(stream.Key) (stream.Object, bool) { return nil, false }
func (nothing) Keys(func(stream.Key) bool)           {}
func (nothing) Present() bool                        { return false }
