package stream

import (
	"context"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/source"
)

// A Sync of many objects does not list them. A list of one object says how new the server is, and
// a short watch from the stream's position what has happened until then: mostly nothing. It says
// that it has told everything up to a version by an event that is newer, or by a bookmark. The
// stream is up to date when its own watch has brought the last of these events. Where the server
// does not say enough, the objects are listed.

// shortWatches is how many of them a Sync reads. The first may end with an old bookmark: after a
// start of the server, for one.
const shortWatches = 2

// many returns the stream's position, if a list of its objects takes more than one page. Otherwise
// it returns "".
func (s syncing) many() (positionRV string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.progress.phase.listed() || int64(len(s.store.Objects)) <= s.config.PageSize {
		return ""
	}
	return s.store.View.Position()
}

// recentGoal is the server's state now, as a short watch tells it. ok is false where a list has to
// tell: also why a request has failed.
func (s syncing) recentGoal(ctx context.Context, news <-chan struct{}) (g goal, ok bool) {
	fromRV := s.many()
	if !coherence.Comparable(fromRV) {
		return g, false
	}
	toRV, err := s.requests.NewestRV(ctx)
	if err != nil || !coherence.Comparable(toRV) {
		return g, false
	}
	r := source.Recent{ToRV: toRV, LastRV: fromRV}
	for n := 0; n < shortWatches && !s.told(&r); n++ {
		if n > 0 {
			_, _ = s.requests.NewestRV(ctx) // what is wrong, the watch says
		}
		w, err := s.requests.DialShort(ctx, r.LastRV)
		if err != nil {
			return g, false
		}
		sound := s.readRecent(ctx, w, &r, news)
		w.Stop()
		if !sound {
			return g, false
		}
	}
	return goal{rv: r.ToRV, afterRV: r.LastRV, recent: true}, r.Done
}

// told reports whether everything is told. The stream itself may have got that far.
func (s syncing) told(r *source.Recent) bool {
	r.Done = r.Done || !coherence.Newer(r.ToRV, s.position())
	return r.Done
}

// readRecent reads a short watch until it has told everything, or ends. It returns false where
// what it says makes no sense. news says that the stream itself has got on.
func (s syncing) readRecent(ctx context.Context, w *source.Watch, r *source.Recent, news <-chan struct{}) (sound bool) {
	for !s.told(r) {
		select {
		case <-ctx.Done():
			return false
		case <-news:
		case e, open := <-w.ResultChan():
			if !open {
				return true
			}
			if !r.Take(e) {
				return false
			}
		}
	}
	return true
}
