package accumulator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/coherence"
)

// feed drives one stream: it lists, then watches from the list's version on, for as long
// as that can be resumed, and lists again where it cannot. It is the stream's only
// goroutine; what follows a request runs in it, so that events come in one order.
//
//	list ─▶ watch ◀─┐ ended: open it again where it was (after a probe, if it ended badly)
//	  ▲       │     │
//	  └───────┴─────┘ 410, restored server, writes given up: a new list
//
// Every list is consistent (no resource version: the newest state), so that none is
// older than what has been shown or written (rule 3 of package coherence).
type feed struct {
	stream *stream
	source cache.ListerWatcherWithContext

	// Of run's goroutine alone:
	pace     wait.Backoff // between failures
	streamed bool         // lists are streamed (KEP-3157), until the server refuses
	version  string       // from which the watch goes on
	doubt    bool         // the server's newest version was older than what we have had

	mu    sync.Mutex
	again context.CancelFunc // ends what is under way, to list anew
	fresh bool               // again has been called
}

const (
	// steady is how long a watch must have lasted for its end to be no failure.
	steady = time.Second
	// openTimeout bounds the opening of a watch and a probe; a list may take longer.
	openTimeout = 30 * time.Second
)

func newFeed(s *stream, source cache.ListerWatcherWithContext) *feed {
	f := &feed{stream: s, source: source, streamed: s.streams.config.StreamLists}
	if l, ok := source.(ListStreamer); ok {
		f.streamed = l.StreamsLists()
	}
	f.pace = f.backoff()
	return f
}

// ListStreamer is a source that says, in place of [Config.StreamLists], whether its lists are to be streamed.
type ListStreamer interface{ StreamsLists() bool }

// run lists and watches until ctx ends.
func (f *feed) run(ctx context.Context) {
	ctx = klog.NewContext(ctx, logr.Discard()) // transitions are logged by the stream
	for ctx.Err() == nil {
		err := f.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.lost(ctx, err)
			f.rest(ctx, err)
		}
	}
}

// round is a list and what is watched on it. It returns nil where a new list is wanted at once.
func (f *feed) round(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.again, f.fresh = cancel, false
	f.mu.Unlock()
	w, err := f.list(ctx)
	if err == nil {
		err = f.follow(ctx, w)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lost notes that a list or watch failed for good.
func (f *feed) lost(ctx context.Context, err error) {
	suspect := apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && f.stream.key.namespace != ""
	if gone := f.stream.streams.config.Gone; gone != nil && suspect {
		ctx, cancel := context.WithTimeout(ctx, openTimeout)
		defer cancel()
		if gone(ctx, f.stream.resource, f.stream.key.namespace, err) {
			f.stream.vanish(f.named(err))
			return
		}
	}
	verb := "list"
	if expired(err) {
		verb = "resume the watch" // only that; a list is next
	}
	f.stream.failed(verb, f.named(err))
}

// relist ends what is under way and starts over with a list.
func (f *feed) relist() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.again != nil && !f.fresh {
		f.fresh = true
		f.again()
	}
}

func (f *feed) backoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 8, Cap: 30 * time.Second}
}

// rest lets time pass after a failure: the server's own advice, if it gave one.
func (f *feed) rest(ctx context.Context, err error) {
	if errors.Is(err, errNoAnswer) || errors.Is(err, context.DeadlineExceeded) {
		f.stream.streams.config.Suspect()
	}
	d := f.pace.Step()
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		// It heals by somebody's deed, and who does it waits for the effect.
		d = min(d, wait.Jitter(f.stream.streams.config.KindPoll, 0.5))
	}
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		d = max(d, time.Duration(s)*time.Second)
	}
	sleep(ctx, d)
}

// options of a request for the stream's query.
func (f *feed) options() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: f.stream.key.labels, FieldSelector: f.stream.key.fields}
}

// named says what was being done when err came.
func (f *feed) named(err error) error {
	if ns := f.stream.key.namespace; ns != "" {
		return fmt.Errorf("watch %s in %q: %w", f.stream.key.resource, ns, err)
	}
	return fmt.Errorf("watch %s: %w", f.stream.key.resource, err)
}

// ask is what was known when a list was asked for.
type ask struct {
	atLeast string // the newest version that the stream or an own write had had
	doubted bool   // the server's newest has been older than that before
}

func (f *feed) asks() ask {
	floor := f.stream.streams.floor(f.stream.resource.Storage)
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	return ask{coherence.Newest(f.stream.view.Position(), floor), f.doubt}
}

// errOlder is a server whose newest state is older than what it has shown: if it
// insists, it was restored from a backup.
var errOlder = errors.New("the server's newest version is older than what it has shown before")

// expired reports whether the version asked for is no longer to be had.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
