package accumulator

import (
	"context"

	"github.com/kates-go/kates/accumulator/stream"
)

// takeAll takes the changes of every field. It returns false if there can be no first snapshot
// yet: a stream had its list, but has given it up, or a query was replaced before its objects
// were read, and none of them is left. It does not wait for a query that was added, or replaced
// by a wider one.
func (a *Accumulator) takeAll(b layout) bool {
	defer a.know(b.fields)
	a.streams.Reach(stream.AtComplete)
	for _, f := range ranked(b.fields) {
		whole := f.present || a.fieldComplete(f) || a.stillComplete(f)
		switch {
		case whole && f.source != nil:
			a.takeFollowed(f)
			f.source.kept.Store(false)
		case whole:
			f.got = a.takeField(f)
		}
		if f.got.ok || a.reader.delivered || whole && a.without(f) || !f.counted.Load() {
			continue // an incomplete one was added, or its kind appeared, since
		}
		for _, other := range b.fields {
			if other.got.ok || other == f {
				a.untake(other)
				other.got = taken{}
			}
		}
		return false
	}
	a.streams.Reach(stream.AtTaken)
	return true
}

// without reports whether an optional field is complete and empty: the kind does not exist, or
// the client has no right to read it.
func (a *Accumulator) without(f *field) bool {
	parts, spaces, known := a.of(f)
	optional := a.queryOf(f).Optional
	switch {
	case !known:
		return a.isAbsent(f)
	case spaces != nil && optional && spaces.State().Refused:
		return true // the selected namespaces cannot be known
	}
	for _, p := range parts {
		if !optional || !p.sub.State().Refused {
			return false
		}
	}
	return true
}

// Sync returns when every stream of this accumulator is as new as the server was at the call, or
// with ctx's error. A resource that does not exist, or that the client may not read, is no error
// if the server says so again: what is shown of it stays.
func (a *Accumulator) Sync(ctx context.Context) error {
	var all []*stream.Listener
	for _, f := range a.fieldsNow() {
		a.mu.Lock()
		all = append(all, f.subscriptions()...)
		a.mu.Unlock()
	}
	return stream.SyncAll(ctx, all)
}
