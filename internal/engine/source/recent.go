package source

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
)

// What has happened lately is asked for without a list of all objects. A list of one object tells
// the server's newest version. A short watch from an older version tells what has happened up to
// there: mostly nothing. It is complete when it brings a newer event, or a bookmark. Somebody who
// reads a watch of the same objects has been told everything when it has brought the last of
// these events.

// Recent says what has happened up to a version.
type Recent struct {
	RV     string // the server's newest version when it was asked
	LastRV string // the newest event up to there, or where the short watches began
}

// shortWatches is how many of them are read. The first may end with an old bookmark: after a start
// of the server, for one.
const shortWatches = 2

// Recent asks what has happened since a version. ok is false where that cannot be told, also
// because a request has failed: a list has to tell. positionRV is how far the caller's own watch
// has come, which may get as far meanwhile. news has a value when it has got on.
func (r Requests) Recent(ctx context.Context, fromRV string, positionRV func() string, news <-chan struct{}) (told Recent, ok bool) {
	if !coherence.Comparable(fromRV) {
		return Recent{}, false
	}
	rv, err := r.NewestRV(ctx)
	if err != nil || !coherence.Comparable(rv) {
		return Recent{}, false
	}
	now := recentEvents{Recent: Recent{RV: rv, LastRV: fromRV}, positionRV: positionRV, news: news}
	for n := 0; n < shortWatches && !now.areComplete(); n++ {
		if n > 0 {
			_, _ = r.NewestRV(ctx) // what is wrong, the watch says
		}
		w, err := r.DialShort(ctx, now.LastRV)
		if err != nil {
			return Recent{}, false
		}
		sound := now.read(ctx, w)
		w.Stop()
		if !sound {
			return Recent{}, false
		}
	}
	return now.Recent, now.complete
}

// recentEvents are those of short watches, up to a version.
type recentEvents struct {
	Recent
	complete   bool
	positionRV func() string
	news       <-chan struct{}
}

// areComplete reports whether everything is told. The caller's own watch may have got that far.
func (r *recentEvents) areComplete() bool {
	r.complete = r.complete || !coherence.Newer(r.RV, r.positionRV())
	return r.complete
}

// read reads a short watch until everything is told, or the watch ends. It returns false where
// what the watch brings makes no sense.
func (r *recentEvents) read(ctx context.Context, w *Watch) (sound bool) {
	for !r.areComplete() {
		select {
		case <-ctx.Done():
			return false
		case <-r.news:
		case e, open := <-w.ResultChan():
			if !open {
				return true
			}
			if !r.addEvent(e) {
				return false
			}
		}
	}
	return true
}

// addEvent takes in an event. It returns false if the event makes no sense. A bookmark may repeat
// an old version. An event that is no newer than the one before does not say when its object was
// deleted (rule 10).
func (r *recentEvents) addEvent(raw watch.Event) (sound bool) {
	e, err := Check(raw)
	if err != nil || !coherence.Comparable(e.RV) {
		return false
	}
	switch {
	case e.Type == watch.Bookmark:
		r.complete = r.complete || !coherence.Newer(r.RV, e.RV)
		return true
	case !coherence.Newer(e.RV, r.LastRV):
		return false
	case coherence.Newer(e.RV, r.RV):
		r.complete = true
		return true
	}
	r.LastRV, r.complete = e.RV, r.complete || e.RV == r.RV
	return true
}
