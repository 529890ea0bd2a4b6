package query

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// lateness is what objects of a union wait for. The lock of the query guards it.
type lateness struct {
	// waiting are the streams that have not reached untilRV, while a shown object waits for them.
	waiting []*stream.Listener
	untilRV string
	// deletion: they have to be as new as the server, which is past a deletion of this number.
	deletion int64
	// caughtUp: a stream has left waiting, so its keys can be decided again.
	caughtUp bool
	// undecided is the number of keys that the last batch has held back.
	undecided int
	// target is the version at which the newest stream of a union began. Before all of them have
	// reached it, one stream may lack an object that has left it, and another may not have it yet.
	target string
}

// Tend removes streams that the query no longer wants, and aligns those of a union.
func (u *union) Tend() (more bool) {
	u.mu.Lock()
	left := u.retire(u.query, u.resource)
	u.noteLeaving()
	aligned := u.aligned.Load()
	more = !u.align()
	turned := u.aligned.Load() != aligned || left != nil
	u.mu.Unlock()
	closeAll(left)
	if turned {
		u.wake()
	}
	return more
}

// align starts to note departures once all streams of a union have their first lists. It reports
// whether nothing is left to do now: all streams have since reached one version, or have not their
// lists yet (U8). Called with mu held.
func (u *union) align() bool {
	if !u.query.Union() || u.aligned.Load() || !u.known() {
		return true
	}
	var ready []*part
	for _, p := range u.parts {
		if !p.settled(u.query.Optional) {
			return true // not yet
		}
		if p.ready() {
			ready = append(ready, p)
		}
	}
	if u.target == "" {
		for _, p := range ready {
			u.target = coherence.Newest(u.target, p.listener.Track())
		}
	}
	u.waiting, u.untilRV, u.deletion = nil, u.target, 0
	for _, p := range ready {
		if coherence.Newer(u.target, p.listener.State().PositionRV) {
			u.waiting = append(u.waiting, p.listener)
		}
	}
	if u.waiting != nil {
		return false
	}
	u.regroup = true
	u.aligned.Store(true)
	return true
}

func (u *union) Late() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.waiting) > 0
}

func (u *union) CatchUp(ctx context.Context) (ok bool) {
	u.mu.Lock()
	late, until, deletion := u.waiting, u.untilRV, u.deletion
	u.mu.Unlock()
	to := until
	if deletion > 0 {
		to = "" // the present
	}
	var tasks sync.WaitGroup
	var failed atomic.Bool
	for _, l := range late {
		tasks.Go(func() {
			if l.CatchUp(ctx, to) == nil {
				u.reached(l, until, deletion)
			} else {
				failed.Store(true)
			}
		})
	}
	tasks.Wait()
	return !failed.Load()
}

// reached notes that a late stream has reached the version that an object waits for.
func (u *union) reached(l *stream.Listener, rv string, deletion int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.parts {
		if p.listener == l {
			p.caughtRV, p.caught = rv, max(p.caught, deletion)
		}
	}
	if i := slices.Index(u.waiting, l); i >= 0 {
		u.waiting = slices.Delete(slices.Clone(u.waiting), i, i+1)
		u.caughtUp = true
	}
}
