package accumulator

import (
	"context"

	"github.com/kates-go/kates/accumulator/stream"
)

// takeAll takes what is new of every field. It reports false where there can be no first
// snapshot yet: some stream has its list, but has given it up again; or nothing is left of what a query had
// that was replaced unread. One that was added, or replaced by one that wants more, is not waited for.
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
			continue // one that is not whole was added, or its kind appeared, since
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

// without reports whether an optional field is complete without anything: there is no such kind, or no
// right to it.
func (a *Accumulator) without(f *field) bool {
	parts, spaces, known := a.of(f)
	optional := a.queryOf(f).Optional
	switch {
	case !known:
		return a.isAbsent(f)
	case spaces != nil && optional && spaces.State().Refused:
		return true // nobody can say which namespaces count
	}
	for _, p := range parts {
		if !optional || !p.sub.State().Refused {
			return false
		}
	}
	return true
}

// Sync returns when every stream of this accumulator is as new as the server was at the call, or with
// ctx's error. It is for a caller that must go on with what can be had: what the server refuses for lack
// of rights, or does not have, and says so again, stays as it is shown, and is no error.
func (a *Accumulator) Sync(ctx context.Context) error {
	var all []*stream.Listener
	for _, f := range a.fieldsNow() {
		a.mu.Lock()
		all = append(all, f.subscriptions()...)
		a.mu.Unlock()
	}
	return stream.SyncAll(ctx, all)
}
