package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// OpenTimeout bounds the opening of a watch and a probe. A list may take longer.
const OpenTimeout = 30 * time.Second

// ErrNoAnswer is the error of a request that the server did not answer in time.
var ErrNoAnswer = fmt.Errorf("no answer within %s", OpenTimeout)

// Watch is an open watch that can end its request.
type Watch struct {
	watch.Interface
	FromRV string // the version at which it began
	cancel context.CancelCauseFunc
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.Interface.Stop()
	w.cancel(nil)
}

// WatchFrom returns the options of a watch that goes on from a version.
func (r Requests) WatchFrom(rv string) metav1.ListOptions {
	o := r.Options()
	o.ResourceVersion, o.AllowWatchBookmarks, o.TimeoutSeconds = rv, true, watchSeconds()
	return o
}

// StreamedList returns the options of a watch that begins with a list of all objects (KEP-3157).
func (r Requests) StreamedList() metav1.ListOptions {
	o, yes := r.WatchFrom(""), true
	o.SendInitialEvents, o.ResourceVersionMatch = &yes, metav1.ResourceVersionMatchNotOlderThan
	return o
}

// watchSeconds is how long the server is asked to keep a watch open: five to ten minutes,
// as client-go's informers ask, spread so that not all watches end at once.
func watchSeconds() *int64 {
	seconds := 300 + rand.Int64N(300)
	return &seconds
}

// Dial opens a watch. A server that does not answer is given up.
func (r Requests) Dial(ctx context.Context, o metav1.ListOptions) (*Watch, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(OpenTimeout, func() { cancel(ErrNoAnswer) })
	lockorder.CallOut("a watch request")
	w, err := r.Source.WatchWithContext(ctx, o)
	if !late.Stop() && err == nil {
		w.Stop() // its context has ended
		err = ErrNoAnswer
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrNoAnswer) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	return &Watch{w, o.ResourceVersion, cancel}, nil
}

// shortSeconds is how long the server is asked to keep a short watch open. A server sends a
// bookmark two seconds before it ends a watch, and once a minute otherwise. A kind that is quiet
// has nothing else to tell that there is nothing new.
const shortSeconds int64 = 3

// DialShort opens a watch that lasts for moments.
func (r Requests) DialShort(ctx context.Context, fromRV string) (*Watch, error) {
	o := r.WatchFrom(fromRV)
	seconds := shortSeconds
	o.TimeoutSeconds = &seconds
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(AskTimeout, func() { cancel(ErrNoAnswer) })
	w, err := r.Dial(ctx, o)
	if !late.Stop() && err == nil {
		w.Stop()
		err = ErrNoAnswer
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	end := w.cancel
	w.cancel = func(cause error) {
		end(cause)
		cancel(nil)
	}
	return w, nil
}

// Event is an event about an object, or a bookmark.
type Event struct {
	watch.Event
	RV string // of the object, or of the bookmark. The server may have sent any text
}

// Check returns the event with its version. It returns an error for an event that ends a watch:
// the server's error, or that the event makes no sense.
func Check(e watch.Event) (Event, error) {
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
	default:
		return Event{}, refused(e)
	}
	m, err := meta.Accessor(e.Object)
	if err != nil {
		return Event{}, Garbled{fmt.Errorf("%s event: %w", e.Type, err)}
	}
	return Event{e, m.GetResourceVersion()}, nil
}

// refused is the error of an event that has no object: the server's, or that it makes no sense.
func refused(e watch.Event) error {
	if e.Type != watch.Error {
		return Garbled{fmt.Errorf("an event of the unknown type %q", object.Brief(string(e.Type)))}
	}
	switch o := e.Object.(type) {
	case *Unreadable:
		return Garbled{o.Err}
	case *metav1.Status:
		return apierrors.FromObject(o)
	}
	return Garbled{fmt.Errorf("an ERROR event with a %T, and no Status", e.Object)}
}
