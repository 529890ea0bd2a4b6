package query

import (
	"context"
	"slices"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/stream"
)

// lateness is what a query waits for: streams that are to be as new as what the reader has had. The
// lock of the query guards it.
type lateness struct {
	// waiting are the streams that have not reached untilRV.
	waiting []*stream.Listener
	untilRV string
	// deletion: they have to be as new as the server, which is past a deletion of this number.
	deletion int64
	// caughtUp: a stream has left waiting, so others may take over.
	caughtUp bool
}

// await has the server asked on behalf of streams that are late, whatever else waits. It reports
// whether there is a new one. Called with mu held.
func (u *union) await(late []*stream.Listener, at position) (more bool) {
	for _, l := range late {
		if !slices.Contains(u.waiting, l) {
			u.waiting, more = append(slices.Clip(u.waiting), l), true
		}
	}
	if late != nil {
		u.untilRV, u.deletion = coherence.Newest(u.untilRV, at.rv), max(u.deletion, at.deletion)
	}
	return more
}

// Tend has streams take over that have come, if no reader does it in its turn.
func (u *union) Tend() {
	u.mu.Lock()
	ready, turned := u.mayTurn(), false
	var left []*stream.Listener
	if ready && !u.taken {
		left, turned = u.takeOver(u.resource), true
	}
	turned = turned || ready && !u.caughtUp
	u.caughtUp = u.caughtUp || ready
	u.mu.Unlock()
	closeAll(left)
	if turned {
		u.wake()
	}
}

// mayTurn reports whether the parts that come may take over: each has its list, and has passed
// what those before have shown (G5). A stream may be late though its list is in: another reader
// may have had it for long. Called with mu held.
func (u *union) mayTurn() bool {
	if !u.moving.Load() {
		return false
	}
	coming := u.coming()
	if slices.ContainsFunc(coming, func(p *part) bool { return !p.settled(u.query.Optional) }) {
		return false
	}
	at := u.newest()
	late := u.behind(coming, at)
	u.await(late, at)
	return late == nil
}

// lateStream is a stream that something waits for.
type lateStream struct {
	union  *union
	stream *stream.Listener
}

// catchUpAfter is how long a late stream may take by itself. Most are late for a moment only.
const catchUpAfter = 100 * time.Millisecond

// Patience is how long the stream may take by itself. For one that does not count yet it doubles
// each time: if what is shown is newer again each time, the server is not asked more and more. A
// bookmark helps, too.
func (l lateStream) Patience() time.Duration {
	u := l.union
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.parts {
		if p.listener == l.stream && (u.awaited.Load() || p.standing == partComes) {
			return catchUpAfter << min(p.helped, 7)
		}
	}
	return catchUpAfter
}

// CatchUp asks the server on behalf of the stream, if something still waits for it. It returns
// false if that failed.
func (l lateStream) CatchUp(ctx context.Context) (ok bool) {
	u := l.union
	u.mu.Lock()
	waits, until, deletion := slices.Contains(u.waiting, l.stream), u.untilRV, u.deletion
	u.mu.Unlock()
	if !waits {
		return true
	}
	backTo, err := catchUp(ctx, l.stream, position{rv: until, deletion: deletion})
	if err != nil {
		return false
	}
	if backTo != "" && u.goesBack(l.stream) {
		l.stream.WentBack(backTo)
	}
	u.reached(l.stream, until, deletion)
	return true
}

// goesBack notes that the server's newest state is older than what an object waits for: the
// cluster was restored from a backup. The stream has not noticed if it is new: the kind is served
// in another version, say, and the former stream has shown what the backup lacks. So the batch
// that has it first has all objects, and does not compare them with those shown. A successor's
// first batch does not either.
func (u *union) goesBack(l *stream.Listener) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.IndexFunc(u.parts, func(p *part) bool { return p.listener == l && p.standing != partLeaves })
	switch {
	case u.awaited.Load() || i < 0:
		return false
	case u.parts[i].standing == partComes:
		u.parts[i].wentBack = true
	default:
		u.regroup, u.newHistory = true, true
	}
	return true
}

func (u *union) Late() (all []Late) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.waiting {
		all = append(all, lateStream{u, l})
	}
	return all
}

// reached notes that a late stream has reached the version that an object waits for.
func (u *union) reached(l *stream.Listener, rv string, deletion int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.parts {
		if p.listener == l {
			p.caughtRV, p.caught = rv, max(p.caught, deletion)
			p.helped++
		}
	}
	if i := slices.Index(u.waiting, l); i >= 0 {
		u.waiting = slices.Delete(slices.Clone(u.waiting), i, i+1)
		u.caughtUp = true
	}
}

// position returns the newest version that the query shows, and of what: that of the newest
// event, bookmark, list, or own write that a stream has.
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
// that new if a deletion that was shown has no version. Called with mu held.
func (u *union) behind(parts []*part, at position) (late []*stream.Listener) {
	if !u.known() || u.resource.Storage != at.storage {
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
