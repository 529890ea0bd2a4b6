package accumulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/lockorder"
)

// Options are the options of one accumulator.
type Options struct {
	Pace Pace
	// QuietOwnWrites suppresses the signals of own writes. The snapshot and its deltas show them
	// all the same.
	QuietOwnWrites bool
	// Invalid is called for each object that is left out because it does not decode or was
	// rejected, once per change of the object. Update calls it without locks.
	Invalid func(Invalid)
	// Shown is called once for each converted value that a snapshot shows. Tests use it to find
	// out whether somebody writes to the value.
	Shown func(query string, source Object, value any)
	// Overdue is how long the first snapshot may take. After that, a log entry names the queries
	// that are incomplete. Default 10 s.
	Overdue time.Duration
}

// Accumulator turns the watches of several queries into one snapshot. The first one is complete
// (G1), each is the latest (G2), changes coalesce and never queue (G3), and the client's own
// writes are in it (G4, G5).
//
//	streams ──dirty keys──▶ fields ──Update──▶ tables ──▶ the caller's struct
//	                          │
//	                          └──poke──▶ pacer ──▶ Changed
//
// Update takes the dirty keys of every stream, reads the current state of each, judges and
// converts those objects and no others, and places them. One goroutine reads an accumulator at a
// time; further readers make their own accumulators, which share the streams. All other methods
// are safe for concurrent use.
type Accumulator struct {
	streams *stream.Set
	options Options
	pacer   *pacer

	cancel   context.CancelFunc // ends the manager
	tasks    sync.WaitGroup
	leisure  sync.WaitGroup // copies for the next snapshot
	unwatch  func() bool    // stops the wait for the context of New
	overdue  *time.Timer
	ready    atomic.Bool   // the first snapshot is complete
	readied  chan struct{} // closed when ready becomes true
	told     atomic.Bool   // the first signal was given
	finished chan struct{}

	mu         lockorder.Mutex[lockorder.Accumulator]
	err        error    // why it ended
	fields     []*field // replaced together with generation, never changed
	generation int
	read       int // the generation of the last snapshot

	editing chan struct{} // held while the fields change
	kicked  chan struct{} // wakes the manager
	follows follower
	turn    chan struct{} // held by the reader during an Update
	reader  reader

	keyed keyConsumer // the partitions of this accumulator, or nil
}

// keyConsumer is what an accumulator knows of its partitions.
type keyConsumer interface {
	// waiting reports whether keys wait for a signal.
	waiting() bool
	// shows reports whether o points into a slice of a partition's last turn.
	shows(o any) bool
	// ended is called once, at the end.
	ended()
}

// New starts an accumulator of the queries. It runs until ctx ends, or Close. If a kind cannot be
// resolved, and its query is not optional, New returns an error that names the query. After an
// error nothing runs.
func New(ctx context.Context, s *stream.Set, queries []Query, o Options) (*Accumulator, error) {
	return start(ctx, s, queries, o, nil)
}

// start is New; p is nil for an accumulator without partitions.
func start(ctx context.Context, s *stream.Set, queries []Query, o Options, p *Partitions) (*Accumulator, error) {
	if err := causeOf(ctx); err != nil {
		return nil, err
	}
	if o.Overdue <= 0 {
		o.Overdue = 10 * time.Second
	}
	a := &Accumulator{
		streams: s, options: o,
		finished: make(chan struct{}),
		readied:  make(chan struct{}),
		turn:     make(chan struct{}, 1),
		editing:  make(chan struct{}, 1),
		kicked:   make(chan struct{}, 1),
		follows:  make(follower, 1),
	}
	if p != nil {
		p.a, a.keyed = a, p
	}
	a.pacer = newPacer(o.Pace, a.news)
	var resolved []Resource
	for _, q := range queries {
		f := &field{name: q.Name, query: q, since: time.Now()}
		r, err := q.Resolve(ctx)
		switch {
		case err == nil:
		case q.Optional && ctx.Err() == nil:
			f.missed(err)
		default:
			return nil, queryError(q, err)
		}
		a.fields, resolved = append(a.fields, f), append(resolved, r)
	}
	if err := link(a.fields); err != nil {
		return nil, err
	}
	if err := a.start(ctx, resolved); err != nil {
		return nil, err
	}
	return a, nil
}

// start joins the streams once all kinds are resolved. From here on only end ends the
// accumulator.
func (a *Accumulator) start(ctx context.Context, resolved []Resource) error {
	life, cancel := context.WithCancel(ctx)
	a.cancel = cancel
	if err := a.streams.Enter(a); err != nil {
		cancel()
		return err
	}
	for i, f := range a.fields {
		if f.err != nil {
			continue
		}
		if err := a.connect(ctx, f, resolved[i]); err != nil {
			a.end(err)
			return err
		}
	}
	a.tasks.Go(func() { a.manage(life) })
	if slices.ContainsFunc(a.fields, func(f *field) bool { return f.source != nil }) {
		a.tasks.Go(func() { a.following(life) })
	}
	a.mu.Lock()
	if a.err == nil {
		a.overdue = time.AfterFunc(a.options.Overdue, a.logOverdue)
		a.unwatch = context.AfterFunc(ctx, func() { a.end(causeOf(ctx)) })
	}
	a.mu.Unlock()
	a.pacer.poke()
	return nil
}

// Changed signals that there is something new for Update. It holds at most one signal, and is
// closed when the accumulator ends. A signal may be spurious, but none is lost.
func (a *Accumulator) Changed() <-chan struct{} { return a.pacer.out }

// complete reports whether every query has its whole first list (G1). Once true, it stays true.
func (a *Accumulator) complete() bool {
	if a.ready.Load() {
		return true
	}
	for _, f := range a.fieldsNow() {
		if !a.fieldComplete(f) {
			return false
		}
	}
	if a.ready.CompareAndSwap(false, true) {
		close(a.readied)
	}
	return true
}

// news reports whether a signal is worth giving.
func (a *Accumulator) news() bool {
	if !a.complete() {
		return false
	}
	if a.told.CompareAndSwap(false, true) {
		return true
	}
	for _, f := range a.fieldsNow() {
		if a.fieldNews(f) {
			return true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.generation != a.read || a.keyed != nil && a.keyed.waiting()
}

// Ready is nil once the first snapshot is complete, and stays nil. Before that, the error says
// which queries are incomplete and why.
func (a *Accumulator) Ready() error {
	if a.complete() {
		return nil
	}
	return fmt.Errorf("incomplete: %s", strings.Join(a.incomplete(), "; "))
}

// incomplete says which queries delay the first snapshot, and why.
func (a *Accumulator) incomplete() (why []string) {
	for _, st := range a.holding() {
		text := fmt.Sprintf("query %q (%s): %s", st.Name, st.Kind, st.State)
		if st.Error != "" {
			text += ": " + st.Error
		}
		why = append(why, text)
	}
	return why
}

// holding returns the queries that delay the first snapshot.
func (a *Accumulator) holding() (all []QueryStatus) {
	for _, f := range a.fieldsNow() {
		if !a.fieldComplete(f) {
			all = append(all, a.statusOf(f))
		}
	}
	return all
}

// logOverdue logs that there is no snapshot yet: as an error if a query has failed, else as
// information.
func (a *Accumulator) logOverdue() {
	why := a.Ready()
	if why == nil || a.Err() != nil {
		return
	}
	log, what := a.streams.Logger().WithValues("after", a.options.Overdue.String()), "still no complete snapshot"
	if slices.ContainsFunc(a.holding(), func(q QueryStatus) bool { return q.Error != "" }) {
		log.Error(why, what)
	} else {
		log.Info(what, "waiting", why.Error())
	}
}

// Err is nil while the accumulator runs. Then it is the cause of the end: ErrClosed, or the cause
// of the context of New.
func (a *Accumulator) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Done is closed when the accumulator has ended.
func (a *Accumulator) Done() <-chan struct{} { return a.finished }

// Close ends the accumulator, and waits until all its goroutines have ended. Streams that have no
// other listener end too.
func (a *Accumulator) Close() {
	a.end(ErrClosed)
	<-a.finished
	a.tasks.Wait()
	a.leisure.Wait()
}

func (a *Accumulator) end(cause error) {
	a.mu.Lock()
	if a.err != nil {
		a.mu.Unlock()
		return
	}
	a.err = cause
	var subs []*stream.Listener
	for _, f := range a.fields {
		subs = append(subs, f.subscriptions()...)
	}
	if a.unwatch != nil {
		a.unwatch()
	}
	if a.overdue != nil {
		a.overdue.Stop()
	}
	a.mu.Unlock()
	a.cancel()
	for _, sub := range subs {
		sub.Close()
	}
	a.streams.Leave(a)
	a.pacer.close()
	if a.keyed != nil {
		a.keyed.ended()
	}
	close(a.finished)
}

// causeOf returns ctx's error with its cause. It still matches the context's error, whatever the
// cause.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
