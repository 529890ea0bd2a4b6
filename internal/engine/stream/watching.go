package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// watchSeconds is how long the server is asked to keep a watch open: five to ten minutes,
// as client-go's informers ask, spread so that not all watches end at once.
func watchSeconds() *int64 {
	seconds := 300 + rand.Int64N(300)
	return &seconds
}

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
	case expired(last.err), errors.Is(last.err, errFull):
		return last.err // deletions that make room come after the event: only a list shows them
	case last.err != nil:
		f.target.failed(toWatch, f.requests.named(last.err))
	case last.barren: // a pause is next, without a watch
		f.target.failed(toWatch, f.requests.named(errShort))
	}
	if last.long || !last.barren {
		f.pace = f.backoff()
	}
	switch {
	case !last.barren:
		f.unread = 0
		return nil
	case !isUnreadable(last.err):
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
			w, err = f.dial(ctx, f.watchFrom(f.resume()))
		}
		switch {
		case err == nil:
			f.pace = pace // that the version is too old may come as an event, too
			f.target.opened(w.fromRV)
			return w, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !passing(err):
			f.pace = pace
			return nil, err
		}
		last.bad = true
		f.target.failed(toWatch, f.requests.named(err))
		if f.rest(ctx, err); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// watchFrom returns the options of a watch that goes on from a version.
func (f *reflector) watchFrom(rv string) metav1.ListOptions {
	o := f.requests.options()
	o.ResourceVersion, o.AllowWatchBookmarks, o.TimeoutSeconds = rv, true, watchSeconds()
	return o
}

// resume is the version that the watch goes on from.
func (f *reflector) resume() string {
	if rv := f.target.position(); coherence.Comparable(rv) {
		return rv
	}
	return f.watchRV
}

// dial opens a watch. A server that does not answer is given up.
func (f *reflector) dial(ctx context.Context, o metav1.ListOptions) (*dialled, error) {
	move := f.moves.Load() // before the request
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(openTimeout, func() { cancel(errNoAnswer) })
	lockorder.CallOut("a watch request")
	w, err := f.source.WatchWithContext(ctx, o)
	if !late.Stop() && err == nil {
		w.Stop() // its context has ended
		err = errNoAnswer
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	return &dialled{w, cancel, move, o.ResourceVersion}, nil
}

var errNoAnswer = fmt.Errorf("no answer within %s", openTimeout)

// dialled is an open watch that can end its request.
type dialled struct {
	watch.Interface
	cancel context.CancelCauseFunc
	move   int64  // the connection has not been exchanged since this move
	fromRV string // where it began
}

// Stop ends the watch.
func (d *dialled) Stop() {
	d.Interface.Stop()
	d.cancel(nil)
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
		end.bad = end.bad || lasted < 5*time.Minute-openTimeout
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
		case e, open := <-w.ResultChan():
			if !open {
				return ending{}
			}
			if err := f.take(e); err != nil {
				return ending{err: err, bad: !errors.Is(err, errFull)}
			}
			brought = true
			quiet.Reset(silence)
		}
	}
}

// take takes in one event. An error ends the watch: it is the server's, or there is no room for an
// object, or the event makes no sense.
func (f *reflector) take(e watch.Event) error {
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
	default:
		return refused(e)
	}
	m, err := meta.Accessor(e.Object)
	if err != nil {
		return unreadable{fmt.Errorf("%s event: %w", e.Type, err)}
	}
	f.step.Begin()
	defer f.step.End()
	if e.Type == watch.Bookmark {
		err = f.target.bookmark(m.GetResourceVersion())
	} else {
		err = f.target.event(e.Object, e.Type == watch.Deleted)
	}
	if err == nil {
		f.watchRV = m.GetResourceVersion()
	}
	return err
}

// refused is the error of an event that has no object: the server's, or that it makes no sense.
func refused(e watch.Event) error {
	if e.Type != watch.Error {
		return unreadable{fmt.Errorf("an event of the unknown type %q", object.Brief(string(e.Type)))}
	}
	switch o := e.Object.(type) {
	case *Unreadable:
		return unreadable{o.Err}
	case *metav1.Status:
		return apierrors.FromObject(o)
	}
	return unreadable{fmt.Errorf("an ERROR event with a %T, and no Status", e.Object)}
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

// newest asks the server for its newest version.
func (f *reflector) newest(ctx context.Context) (rv string, err error) {
	if clock, ok := f.source.(Clock); ok {
		return clock.NewestRV(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	o := f.requests.options()
	o.Limit = 1
	lockorder.CallOut("a probe")
	list, err := f.source.ListItems(ctx, o, func(runtime.Object) error { return nil })
	if err == nil {
		err = f.target.dated(list.ResourceVersion, f.target.position())
	}
	return list.ResourceVersion, err
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
	return !errors.Is(err, errOlder) && !errors.Is(err, errResidue) && !expired(err) &&
		!apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) && !object.Misplaced(err)
}
