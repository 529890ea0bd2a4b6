package reflector

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/source"
)

// Config is what a reflector does.
type Config struct {
	Requests source.Requests
	// Streamed asks for lists as streams of events (KEP-3157), unless the source knows better.
	Streamed bool
	// PageSize is that of lists in pages. 0: by the size of the objects.
	PageSize int64
	// IdleTimeout is how long a watch may bring nothing, not even a bookmark.
	IdleTimeout time.Duration
	// KindPoll is about the longest pause after an error that somebody has to correct by hand: a
	// right or a kind is missing. The server's advice may be longer.
	KindPoll time.Duration
	// Suspect is called when the server was silent, or did not answer in time.
	Suspect func()
	// Lost reports whether an error makes it certain that there is nothing left to watch. It may
	// ask the server.
	Lost func(ctx context.Context, err error) bool
	// First makes the first list; nil: the server does.
	First First
	// BeforeList is called before each list that no First precedes.
	BeforeList func(ctx context.Context)
	// Reach lets tests do something before a list or a watch.
	Reach func(Request)
}

// Reflector keeps a sink as new as the server.
type Reflector struct {
	Config
	sink   Sink
	counts counts

	// Of Run's goroutine alone:
	pace     wait.Backoff // between failures
	garbled  int          // watches in a row that could not be read
	streamed bool         // lists are streamed, until the server refuses
	watchRV  string       // from which the watch goes on
	doubt    doubt
	// pagesFailed: the last list in pages has failed. The next one has small pages. Those whose
	// size followed the objects may have been too much for the server, or for the way.
	pagesFailed bool

	mu    lockorder.Mutex[lockorder.Reflector]
	round round
	hand  handover
}

// round is the list and the watches that are under way. The reflector's lock guards it.
type round struct {
	cancel context.CancelFunc
	again  bool // cancel was called, to list again
}

// New returns a reflector that does nothing before Run.
func New(sink Sink, c Config) *Reflector {
	f := &Reflector{Config: c, sink: sink, streamed: c.Streamed, hand: handover{moved: make(chan struct{}, 1)}}
	if mode := c.Requests.Source.Lists(); mode != source.ListsAsConfigured {
		f.streamed = mode == source.ListsStreamed
	}
	f.resetPauses()
	return f
}

// Run lists and watches until ctx ends.
func (f *Reflector) Run(ctx context.Context) {
	defer f.closeHandover()
	ctx = klog.NewContext(ctx, logr.Discard()) // the sink logs transitions
	for why := listFirst; ctx.Err() == nil; {
		followed, err := f.listAndWatch(ctx, why)
		if ctx.Err() != nil {
			return
		}
		why = listAfter(err, followed)
		if err != nil {
			f.report(ctx, err)
			f.pause(ctx, err)
		}
	}
}

// listAndWatch takes in a list, for a reason, and what is watched on it. It reports whether the
// list was committed. The error is nil where a new list is wanted at once.
func (f *Reflector) listAndWatch(ctx context.Context, why listReason) (followed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.round = round{cancel: cancel}
	f.mu.Unlock()
	w, first, err := f.fill(ctx, why)
	if err != nil && f.doubt == probeOlder {
		f.doubt = listOlder // the server may be another one by now: it is asked again
	}
	if followed = err == nil; followed {
		err = f.follow(ctx, w, first)
	}
	if ctx.Err() != nil {
		return followed, nil
	}
	return followed, err
}

// fill takes in a list. It returns a watch if one is open, and the reason for the next one.
func (f *Reflector) fill(ctx context.Context, why listReason) (*dialled, watchReason, error) {
	if first := f.First; first != nil {
		err := f.loadFirst(ctx, first)
		if !first.Loaded(ctx, err) {
			f.First = nil
		}
		if err == nil || ctx.Err() != nil {
			return nil, watchKept, err
		}
	} else {
		f.BeforeList(ctx)
	}
	f.counts.lists[why].Add(1)
	w, err := f.list(ctx)
	if err == nil {
		f.First = nil
	}
	return w, watchListed, err
}

// report says that a list failed, or a watch so that only a list helps.
func (f *Reflector) report(ctx context.Context, err error) {
	if f.Lost(ctx, err) {
		f.sink.Gone(f.Requests.Named(err))
		return
	}
	what := ToList
	if source.Expired(err) {
		what = ToResume // only that; a list is next
	}
	f.sink.Failed(what, f.Requests.Named(err))
}

// Relist ends what is under way and starts over with a list. Any goroutine may call it.
func (f *Reflector) Relist() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.round.cancel != nil && !f.round.again {
		f.round.again = true
		f.round.cancel()
	}
}

func (f *Reflector) resetPauses() {
	f.pace = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 8, Cap: pauseMost}
}

// pause waits after a failure: as long as the server advises, if it does.
func (f *Reflector) pause(ctx context.Context, err error) {
	if errors.Is(err, source.ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded) {
		f.Suspect()
	}
	d := f.pace.Step()
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		// Somebody corrects it by hand, and waits for the effect.
		d = min(d, wait.Jitter(f.KindPoll, 0.5))
	}
	if pause, ok := source.Advice(err); ok {
		d = max(d, pause)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.hand.moved: // over another connection there is nothing to wait for
		f.resetPauses()
	case <-ctx.Done():
	}
}
