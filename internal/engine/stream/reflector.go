package stream

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// reflector keeps a target as new as the server: it lists, then watches from the list's version
// on for as long as that can be resumed, and lists again where it cannot. It is the target's only
// goroutine: what follows a request runs in it, so that events come in one order.
//
//	list ─▶ watch ◀─┐ it ended: open it again where it was (after a probe, if it ended badly)
//	  ▲       │     │
//	  └───────┴─────┘ 410, restored server, own writes given up: a new list
//
// Every list is consistent (no resource version: the newest state), so that none is older than
// what has been shown or written (rule 3 of package coherence).
type reflector struct {
	target   target
	requests source.Requests
	config   *Config
	tally    *tally          // what is counted; nil: nothing
	step     *watchdog.Pulse // what is done without a request; nil: nobody asks

	// Of run's goroutine alone:
	pace     wait.Backoff // between failures
	unread   int          // watches in a row that could not be read
	streamed bool         // lists are streamed (KEP-3157), until the server refuses
	watchRV  string       // from which the watch goes on
	first    *stream      // whose first list may come from files; nil: none, or it was taken in
	doubt    doubt

	moves atomic.Int64  // how often the connection was exchanged, see Set.Move
	moved chan struct{} // gets a signal each time

	mu    lockorder.Mutex[lockorder.Reflector]
	again context.CancelFunc // ends what is under way, to list again
	asked bool               // again has been called
	hand  handover
}

// target is what a reflector fills: the store of a stream.
type target interface {
	// begin starts the next store. A list that may be of a new history says so.
	begin(newHistory bool) listing
	// listing notes how many objects the list under way has, 0 if there is none.
	listing(objects int)
	// commit puts a whole list in the place of the store.
	commit(l listing, rv string, asked ask) error
	// event takes in a live event of the watch, and bookmark a position without an object. An error
	// ends the watch.
	event(o runtime.Object, deleted bool) error
	bookmark(rv string) error
	// position is the version up to which the target is complete, "" before the first list.
	position() string
	// floor is the version that no list may be older than.
	floor() string
	// owed reports whether something waits for a version that the watch has not shown.
	owed() bool
	// opened notes that a watch is open that began at a version, unheard that it failed and
	// brought nothing new, failed that a list or watch failed, and vanished that there is
	// certainly nothing left to watch.
	opened(fromRV string)
	unheard()
	failed(what request, err error)
	vanished(why error)
	// reach lets tests do something at a point.
	reach(p Point, key object.Key)
	// askOrigin asks which server a list comes from, and started notes how the first one was made.
	askOrigin(ctx context.Context) (warm.Origin, error)
	started(why error)
	// lost reports whether err makes it certain that there is nothing left to watch.
	lost(ctx context.Context, err error) bool
}

const (
	// steady is how long a watch must have lasted for its end to be no failure.
	steady = time.Second
	// pauseMost is the longest pause between failures.
	pauseMost = 30 * time.Second
)

func newReflector(t target, r source.Requests, c *Config) *reflector {
	f := &reflector{target: t, requests: r, config: c, streamed: c.StreamLists, moved: make(chan struct{}, 1)}
	if mode := r.Source.Lists(); mode != source.ListsAsConfigured {
		f.streamed = mode == source.ListsStreamed
	}
	f.pace = f.backoff()
	return f
}

// run lists and watches until ctx ends.
func (f *reflector) run(ctx context.Context) {
	defer f.end()
	ctx = klog.NewContext(ctx, logr.Discard()) // the target logs transitions
	for why := listFirst; ctx.Err() == nil; {
		followed, err := f.round(ctx, why)
		if ctx.Err() != nil {
			return
		}
		why = roundError{err, followed}.next()
		if err != nil {
			f.lost(ctx, err)
			f.rest(ctx, err)
		}
	}
}

// round is a list, for a reason, and what is watched on it. It reports whether the list was taken
// in. The error is nil where a new list is wanted at once.
func (f *reflector) round(ctx context.Context, why listReason) (followed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.again, f.asked = cancel, false
	f.mu.Unlock()
	w, first, err := f.begin(ctx, why)
	if followed = err == nil; followed {
		err = f.follow(ctx, w, first)
	}
	if ctx.Err() != nil {
		return followed, nil
	}
	return followed, err
}

// begin takes in a list. The first one may come from files. It returns a watch if one is open, and
// the reason for the next one.
func (f *reflector) begin(ctx context.Context, why listReason) (*dialled, watchReason, error) {
	if f.first != nil {
		done, err := f.warm(ctx)
		if done {
			f.first = nil
		}
		if err == nil || ctx.Err() == nil {
			f.target.started(err)
		}
		if err == nil || ctx.Err() != nil {
			return nil, watchKept, err
		}
	} else {
		_, _ = f.target.askOrigin(ctx) // without it, the list is not kept
	}
	f.tally.list(why)
	w, err := f.list(ctx)
	if err == nil {
		f.first = nil
	}
	return w, watchListed, err
}

// lost notes that a list or watch failed for good.
func (f *reflector) lost(ctx context.Context, err error) {
	if f.target.lost(ctx, err) {
		f.target.vanished(f.requests.Named(err))
		return
	}
	what := toList
	if source.Expired(err) {
		what = toResume // only that; a list is next
	}
	f.target.failed(what, f.requests.Named(err))
}

// relist ends what is under way and starts over with a list. Any goroutine may call it.
func (f *reflector) relist() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.again != nil && !f.asked {
		f.asked = true
		f.again()
	}
}

func (f *reflector) backoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 8, Cap: pauseMost}
}

// rest waits after a failure: as long as the server advises, if it does.
func (f *reflector) rest(ctx context.Context, err error) {
	if errors.Is(err, source.ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded) {
		f.config.Suspect()
	}
	d := f.pace.Step()
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		// Somebody heals it by hand, and waits for the effect.
		d = min(d, wait.Jitter(f.config.KindPoll, 0.5))
	}
	if pause, ok := source.Advice(err); ok {
		d = max(d, pause)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.moved: // over another connection there is nothing to wait for
		f.pace = f.backoff()
	case <-ctx.Done():
	}
}

// ask is what was known when a list was asked for.
type ask struct {
	atLeastRV string // the newest version that the target or an own write had had
	doubted   bool   // the server's newest version was older than that
}

func (f *reflector) asks() ask {
	return ask{f.target.floor(), f.doubt == probeOlder}
}

// doubt is what speaks for a server that was restored from a backup.
type doubt int

const (
	noDoubt    doubt = iota
	listOlder        // a list was older than what the server has had: is it the server, or the list?
	probeOlder       // its newest version was, when it was asked for nothing else
)

// errOlder is a server whose newest state is older than what it has shown. If it insists, it was
// restored from a backup.
var errOlder = errors.New("the server's newest version is older than what it has shown before")
