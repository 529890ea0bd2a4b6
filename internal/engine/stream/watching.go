package stream

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// ending is how a watch ended.
type ending struct {
	err error
	// bad: it ended before its time. The server has to be probed (rule 8).
	bad bool
	// barren: it brought nothing new, and failed or did not last. There has to be a pause.
	barren bool
	// unheard: it is barren, and says nothing about how new the objects are.
	unheard bool
	// long: it lasted. What was before does not count.
	long bool
	// silent: nothing came, not even a bookmark.
	silent bool
	// moved: it is still open, over a connection that was exchanged.
	moved bool
}

// errShort is the end of a watch that brought nothing new.
var errShort = errors.New("the server ended it as soon as it was open")

// follow reads w, if there is one, and then one watch after the other, each from the version at
// which the one before ended. why is the reason for the first one. It returns when only a new list
// helps.
func (f *reflector) follow(ctx context.Context, w *dialled, why watchReason) error {
	var last ending
	for ; ; why = last.next() {
		if w == nil {
			var err error
			if w, err = f.open(ctx, last); err != nil {
				return err
			}
		}
		f.tally.watch(why)
		last = f.read(ctx, w)
		// The old watch may have ended with its credentials before it was known that there is a
		// next.
		last.moved = last.moved || w.move != f.moves.Load()
		if last.moved {
			next, err := f.exchange(ctx)
			w.Stop()
			if err != nil {
				return err
			}
			w = next
			continue
		}
		w.Stop()
		w = nil
		if err := f.ended(ctx, last); err != nil {
			return err
		}
	}
}

// ended notes how a watch ended, and waits where there has to be a pause. It returns an error
// where only a new list helps.
func (f *reflector) ended(ctx context.Context, last ending) error {
	if last.unheard {
		f.target.unheard()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case source.Expired(last.err), errors.Is(last.err, source.ErrTooMany):
		return last.err // deletions that make room come after the event: only a list shows them
	case last.err != nil:
		f.target.failed(toWatch, f.requests.Named(last.err))
	case last.barren: // a pause is next, without a watch
		f.target.failed(toWatch, f.requests.Named(errShort))
	}
	if last.long || !last.barren {
		f.pace = f.backoff()
	}
	switch {
	case !last.barren:
		f.unread = 0
		return nil
	case !source.IsGarbled(last.err):
	case f.unread+1 == unreadableMost:
		f.unread = 0
		return last.err
	default:
		f.unread++
	}
	f.rest(ctx, last.err)
	return nil
}

// open opens the next watch. It retries errors that may pass, so that a broken connection costs no
// list. If a server was away and then asks for a list, the list is made at once: the pauses of the
// outage do not count.
func (f *reflector) open(ctx context.Context, last ending) (*dialled, error) {
	pace := f.pace
	if last.silent {
		f.config.Suspect()
	}
	for {
		var w *dialled
		var err error
		if last.bad || last.silent {
			err = f.probe(ctx, last)
		}
		if err == nil {
			w = f.handed()
		}
		if err == nil && w == nil {
			f.target.reach(AtWatch, object.Key{})
			w, err = f.dial(ctx, f.requests.WatchFrom(f.resume()))
		}
		switch {
		case err == nil:
			f.pace = pace // that the version is too old may come as an event, too
			f.target.opened(w.FromRV)
			return w, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !passing(err):
			f.pace = pace
			return nil, err
		}
		last.bad = true
		f.target.failed(toWatch, f.requests.Named(err))
		if f.rest(ctx, err); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// unreadableMost is how many watches in a row may be unreadable, and bring nothing new, before a
// list is made.
const unreadableMost = 4

// resume is the version that the watch goes on from.
func (f *reflector) resume() string {
	if rv := f.target.position(); coherence.Comparable(rv) {
		return rv
	}
	return f.watchRV
}

// read takes in what a watch brings until it ends.
func (f *reflector) read(ctx context.Context, w *dialled) (end ending) {
	silence := f.config.IdleTimeout
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	started, from, brought := time.Now(), f.target.position(), false
	defer func() {
		lasted := time.Since(started)
		news := brought && (!coherence.Comparable(from) || coherence.Newer(f.target.position(), from))
		end.barren = !news && (end.err != nil || lasted < steady)
		end.unheard = end.barren && (!brought || lasted < steady)
		end.long = lasted > pauseMost
		// The server ends a watch after five minutes at the earliest.
		end.bad = end.bad || lasted < 5*time.Minute-source.OpenTimeout
	}()
	for {
		select {
		case <-ctx.Done():
			return ending{}
		case <-quiet.C:
			return ending{silent: true}
		case <-f.moved:
			if w.move != f.moves.Load() {
				return ending{moved: true}
			}
		case raw, open := <-w.ResultChan():
			if !open {
				return ending{}
			}
			e, err := source.Check(raw)
			if err == nil {
				err = f.take(e)
			}
			if err != nil {
				return ending{err: err, bad: !errors.Is(err, source.ErrTooMany)}
			}
			brought = true
			quiet.Reset(silence)
		}
	}
}

// dial opens a watch.
func (f *reflector) dial(ctx context.Context, o metav1.ListOptions) (*dialled, error) {
	move := f.moves.Load() // before the request
	w, err := f.requests.Dial(ctx, o)
	if err != nil {
		return nil, err
	}
	return &dialled{w, move}, nil
}

// dialled is an open watch, over the connection that was there after a move.
type dialled struct {
	*source.Watch
	move int64
}

// take takes in one event. An error ends the watch: it is the server's, or there is no room for an
// object, or the event makes no sense.
func (f *reflector) take(e source.Event) (err error) {
	f.step.Begin()
	defer f.step.End()
	if e.Type == watch.Bookmark {
		err = f.target.bookmark(e.RV)
	} else {
		err = f.target.event(e.Object, e.Type == watch.Deleted)
	}
	if err == nil {
		f.watchRV = e.RV
	}
	return err
}

// newest asks the server for its newest version.
func (f *reflector) newest(ctx context.Context) (rv string, err error) {
	ctx, cancel := context.WithTimeout(ctx, source.OpenTimeout)
	defer cancel()
	now, err := f.requests.Newest(ctx)
	if err == nil {
		err = source.CheckListVersion(now.RV, f.target.position())
	}
	return now.RV, err
}

// errResidue asks for a list: something waits for a version that the watch does not show.
var errResidue = errors.New("the watch is silent, and own writes wait for it")

// probe asks the server for its newest version (rule 8). A new list is needed if that is older
// than what the server has shown or has answered a write with, or if the server was silent while
// something waits for it.
func (f *reflector) probe(ctx context.Context, last ending) error {
	if !coherence.Comparable(f.resume()) {
		return nil
	}
	asked := f.asks()
	newestRV, err := f.newest(ctx)
	switch {
	case err != nil:
		return err
	case coherence.Newer(asked.atLeastRV, newestRV):
		f.doubt = probeOlder
		return errOlder
	case last.silent && f.target.owed():
		return errResidue
	}
	return nil
}

// confirm asks whether the server is as old as its list was (rule 8). If it is not, the list was
// wrong.
func (f *reflector) confirm(ctx context.Context) error {
	atLeastRV := f.target.floor()
	rv, err := f.newest(ctx)
	if err != nil {
		return err
	}
	f.doubt = noDoubt
	if coherence.Newer(atLeastRV, rv) {
		f.doubt = probeOlder
	}
	return nil
}

// passing reports whether resuming at the same version may yet succeed.
func passing(err error) bool {
	return !errors.Is(err, errOlder) && !errors.Is(err, errResidue) && !source.Expired(err) &&
		!apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) && !object.Misplaced(err)
}
