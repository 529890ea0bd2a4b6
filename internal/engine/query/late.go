package query

import (
	"context"
	"slices"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/stream"
)

// Streams that are to show objects in place of others have to be as new as what was shown (G5). A
// stream may be late though its list is in: another reader may have had it for long. The server is
// asked on its behalf.

// lateness is what a query waits for. The lock of the query guards it.
type lateness struct {
	// waiting are the streams that have not reached untilRV.
	waiting []*stream.Listener
	untilRV string
	// deletion: they have to be as new as the server, which is past a deletion of this number.
	deletion int64
	// mayTakeOver: a late stream has become as new as it has to be, so the next streams may show.
	mayTakeOver bool
}

// addLate adds streams to those that are late. A task asks the server for them. It reports whether
// one of them was not among them before. It does not block. Called with mu held.
func (u *union) addLate(late []*stream.Listener, at Position) (more bool) {
	for _, l := range late {
		if !slices.Contains(u.waiting, l) {
			u.waiting, more = append(slices.Clip(u.waiting), l), true
		}
	}
	if late != nil {
		u.untilRV, u.deletion = coherence.Newest(u.untilRV, at.RV), max(u.deletion, at.Deletion)
	}
	return more
}

// canSwitch reports whether the streams of the kind as it is served now can take over: each has its
// list, or can do without, and has passed what the others have shown. Called with mu held.
func (u *union) canSwitch() bool {
	if u.next == nil || !u.next.settled(u.query.Optional) || u.next.lacks(u.now) {
		return false
	}
	at := u.now.position()
	late := u.next.behind(at)
	u.addLate(late, at)
	return late == nil
}

// switchOver has them take over. The next batch has all objects. It returns the listeners of the
// others. If the kind is another stored resource, versions do not compare. Called with mu held.
func (u *union) switchOver() (left []*stream.Listener) {
	left = u.now.listeners()
	u.next.breaks |= u.now.breaks
	if len(u.now.parts) > 0 && u.now.resource.Storage != u.next.resource.Storage {
		u.next.breaks |= NewHistory
	}
	u.now, u.next = u.next, nil
	u.to(served)
	return left
}

// tend has streams take over, if no reader does it in its turn.
func (u *union) tend() {
	u.mu.Lock()
	can, switched := u.canSwitch(), false
	var left []*stream.Listener
	if can && u.life < shown {
		left, switched = u.switchOver(), true
	}
	switched = switched || can && !u.mayTakeOver
	u.mayTakeOver = u.mayTakeOver || can
	u.mu.Unlock()
	CloseAll(left)
	if switched {
		u.wake()
	}
}

// Attend has streams take over that can, if no reader does it in its turn.
func (u *union) Attend() (all []Task) {
	u.tend()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.waiting {
		all = append(all, lateStream{u, l})
	}
	if u.err != nil || u.latest().misplaced() {
		all = append(all, Unresolved{u, &u.host})
	}
	return all
}

// CanFollow reports whether a query can be shown, so that nothing of former is taken back; nil:
// there is none under its name. Neither has Refs. It waits for streams that are late, and has the
// server asked on their behalf. It also waits for a right to come back that the query lacks, and
// that former had: objects that are shown do not go away by a refusal that may pass (G8).
func CanFollow(q, former Running) bool {
	u := unionOf(q)
	if u.Phase() < Complete || !u.passed(u.host.Past.of(u.query.Name, u.current().resource.Storage)) {
		return false
	}
	return former == nil || !u.current().lacks(unionOf(former).current())
}

// passed reports whether all streams have reached a version of the same resource.
func (u *union) passed(at Position) bool {
	u.mu.Lock()
	late := u.now.behind(at)
	more := u.addLate(late, at)
	u.mu.Unlock()
	if more {
		u.host.Attend()
	}
	return late == nil
}

// lateStream is a stream that something waits for.
type lateStream struct {
	union  *union
	stream *stream.Listener
}

// CatchUpAfter is how long a late stream may take by itself. Most are late for a moment only.
const CatchUpAfter = 100 * time.Millisecond

// Patience is how long the stream may take by itself. For one that is not shown yet it doubles
// each time: if what is shown is newer again each time, the server is not asked more and more. A
// bookmark helps, too.
func (l lateStream) Patience() time.Duration {
	u := l.union
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.latest().part(l.stream); p != nil && (u.next != nil || u.waits()) {
		return CatchUpAfter << min(p.helped, 7)
	}
	return CatchUpAfter
}

// Do asks the server on behalf of the stream, if something still waits for it.
func (l lateStream) Do(ctx context.Context) (ok bool) {
	u := l.union
	u.mu.Lock()
	waits, until, deletion := slices.Contains(u.waiting, l.stream), u.untilRV, u.deletion
	u.mu.Unlock()
	if !waits {
		return true
	}
	backTo, err := CatchUp(ctx, l.stream, Position{RV: until, Deletion: deletion})
	if err != nil {
		return false
	}
	if backTo != "" && u.goesBack(l.stream) {
		l.stream.WentBack(backTo)
	}
	u.reached(l.stream, until, deletion)
	return true
}

// goesBack notes that the server's history went back: the cluster was restored from a backup. A
// stream that is new cannot notice that. The next batch of the streams has all objects, and breaks
// with NewHistory. goesBack returns false if the reader has nothing of these streams yet: the first
// batch has all objects in any case.
func (u *union) goesBack(l *stream.Listener) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.latest()
	if u.waits() || s.part(l) == nil {
		return false
	}
	s.taken, s.breaks = false, s.breaks|NewHistory
	return true
}

// reached takes in that a late stream has reached the version that an object waits for.
func (u *union) reached(l *stream.Listener, rv string, deletion int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range []*streams{u.now, u.next} {
		if s == nil {
			continue
		}
		if p := s.part(l); p != nil {
			p.excusedRV, p.excusedDeletion = rv, max(p.excusedDeletion, deletion)
			p.helped++
		}
	}
	if i := slices.Index(u.waiting, l); i >= 0 {
		u.waiting = slices.Delete(slices.Clone(u.waiting), i, i+1)
		u.mayTakeOver = true
	}
}

// Past is how new what a reader has had under each name of a query is. A query that takes the
// name, at once or later, has to be as new: nothing that was shown is taken back (G5). The zero
// value is empty.
type Past struct {
	mu  lockorder.Mutex[lockorder.Past]
	had map[pastKey]Position // bounded by the names and the resources that were ever watched
}

// pastKey is a query's name and a stored resource: versions compare within one.
type pastKey struct{ name, storage string }

// raise adds how new what the reader has is now. With newHistory versions from before do not
// compare.
func (p *Past) raise(name string, at Position, newHistory bool) {
	if at.Storage == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.had == nil {
		p.had = make(map[pastKey]Position)
	}
	key := pastKey{name, at.Storage}
	if old := p.had[key]; !newHistory {
		if at.Deletion != 0 || !coherence.Newer(at.RV, old.RV) { // else the position is past the deletion
			at.Deletion = max(at.Deletion, old.Deletion)
		}
		at.RV = coherence.Newest(at.RV, old.RV)
	}
	p.had[key] = at
}

// of returns what was noted of a name and a resource.
func (p *Past) of(name, storage string) Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.had[pastKey{name, storage}]
	at.Storage = storage
	return at
}

// Forget forgets everything: nothing of it was shown.
func (p *Past) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.had = nil
}

// CatchUp asks the server on behalf of a stream that has to be as new as something that was shown.
// It returns the version of the server's list if that is older: the server's history went back.
func CatchUp(ctx context.Context, l *stream.Listener, at Position) (backTo string, err error) {
	to := at.RV
	if at.Deletion > 0 {
		to = "" // the present
	}
	listRV, err := l.CatchUp(ctx, to)
	if err == nil && coherence.Comparable(listRV) && coherence.Newer(at.RV, listRV) {
		backTo = listRV
	}
	return backTo, err
}
