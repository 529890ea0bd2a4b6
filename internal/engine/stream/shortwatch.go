package stream

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
)

// A Sync of many objects does not list them. A list of one object says how new the server is, and
// a short watch from the stream's position what has happened until then: mostly nothing. It says
// that it has told everything up to a version by an event that is newer, or by a bookmark. The
// stream is up to date when its own watch has brought the last of these events. Where the server
// does not say enough, the objects are listed.

// shortSeconds is how long the server is asked to keep a short watch open. A server sends a
// bookmark two seconds before it ends a watch, and once a minute otherwise. A kind that is quiet
// has nothing else to tell that there is nothing new.
const shortSeconds int64 = 3

// shortWatches is how many of them a Sync reads. The first may end with an old bookmark: after a
// start of the server, for one.
const shortWatches = 2

// dialShort opens a watch that lasts for moments.
func (f *reflector) dialShort(ctx context.Context, fromRV string) (*dialled, error) {
	o := f.watchFrom(fromRV)
	seconds := shortSeconds
	o.TimeoutSeconds = &seconds
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(askMost, cancel)
	d, err := f.dial(ctx, o)
	if !late.Stop() && err == nil {
		d.Stop()
		err = errNoAnswer
	}
	if err != nil {
		cancel()
		return nil, err
	}
	end := d.cancel
	d.cancel = func(cause error) {
		end(cause)
		cancel()
	}
	return d, nil
}

// newestRV asks for the server's newest version, with a list of one object. It makes the server's
// cache follow etcd, which a bookmark needs to be new.
func (r requests) newestRV(ctx context.Context) (string, error) {
	if clock, ok := r.source.(Clock); ok {
		return clock.NewestRV(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, askMost)
	defer cancel()
	o := r.options()
	o.Limit = 1
	lockorder.CallOut("a list of one object")
	m, err := patiently(r.source.ListItems)(ctx, o, func(runtime.Object) error { return nil })
	return m.ResourceVersion, err
}

// recent is what a short watch has told.
type recent struct {
	toRV   string // it has to tell all that has happened up to this version
	lastRV string // the newest event up to there, or where the watch began
	done   bool   // everything is told
}

// many returns the stream's position, if a list of its objects takes more than one page. Otherwise
// it returns "".
func (s syncing) many() (positionRV string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.progress.synced || int64(len(s.store.objects)) <= s.config.PageSize {
		return ""
	}
	return s.store.view.Position()
}

// recentGoal is the server's state now, as a short watch tells it. ok is false where a list has to
// tell: also why a request has failed.
func (s syncing) recentGoal(ctx context.Context, news <-chan struct{}) (g goal, ok bool) {
	fromRV := s.many()
	if !coherence.Comparable(fromRV) {
		return g, false
	}
	toRV, err := s.requests.newestRV(ctx)
	if err != nil || !coherence.Comparable(toRV) {
		return g, false
	}
	r := recent{toRV: toRV, lastRV: fromRV}
	for n := 0; n < shortWatches && !s.told(&r); n++ {
		if n > 0 {
			_, _ = s.requests.newestRV(ctx) // what is wrong, the watch says
		}
		w, err := s.reflector.dialShort(ctx, r.lastRV)
		if err != nil {
			return g, false
		}
		sound := s.readRecent(ctx, w, &r, news)
		w.Stop()
		if !sound {
			return g, false
		}
	}
	return goal{rv: r.toRV, afterRV: r.lastRV, recent: true}, r.done
}

// told notes that nothing has to be told of what the stream has already.
func (s syncing) told(r *recent) bool {
	r.done = r.done || !coherence.Newer(r.toRV, s.position())
	return r.done
}

// readRecent reads a short watch until it has told everything, or ends. It returns false where
// what it says makes no sense. news says that the stream itself has got on.
func (s syncing) readRecent(ctx context.Context, w *dialled, r *recent, news <-chan struct{}) (sound bool) {
	for !s.told(r) {
		select {
		case <-ctx.Done():
			return false
		case <-news:
		case e, open := <-w.ResultChan():
			if !open {
				return true
			}
			if !r.take(e) {
				return false
			}
		}
	}
	return true
}

// take takes in an event. A bookmark may repeat an old version. An event that is no newer than the
// one before does not say when its object was deleted (rule 10).
func (r *recent) take(e watch.Event) (sound bool) {
	m, err := meta.Accessor(e.Object)
	if err != nil {
		return false
	}
	rv := m.GetResourceVersion()
	if !coherence.Comparable(rv) {
		return false
	}
	switch e.Type {
	case watch.Bookmark:
		r.done = r.done || !coherence.Newer(r.toRV, rv)
		return true
	case watch.Added, watch.Modified, watch.Deleted:
	default:
		return false
	}
	switch {
	case !coherence.Newer(rv, r.lastRV):
		return false
	case coherence.Newer(rv, r.toRV):
		r.done = true
		return true
	}
	r.lastRV, r.done = rv, r.done || rv == r.toRV
	return true
}
