package accumulator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/snapshot"
)

// Options of one accumulator.
type Options struct {
	Pace Pace
	// QuietOwnWrites keeps own writes from signalling. They are in the snapshot and
	// the deltas all the same.
	QuietOwnWrites bool
	// Invalid is told of each object that is left out because it does not decode or
	// was rejected, once per change of it, from within Update, without locks.
	Invalid func(Invalid)
	// Shown is told of each converted value that a snapshot shows, once: for a test
	// that looks whether somebody writes to it.
	Shown func(query string, source Object, value any)
	// Overdue is how long the first snapshot may take before it is logged which query
	// holds it up. Default 10 s.
	Overdue time.Duration
}

// Accumulator turns the watches of several queries into one snapshot: complete at
// first (G1), the latest whenever it is asked (G2), coalesced and never queued (G3),
// with this client's own writes in it (G4, G5).
//
//	streams ──dirty keys──▶ fields ──Update──▶ tables ──▶ the caller's struct
//	                          │
//	                          └──poke──▶ pacer ──▶ Changed
//
// Update takes the dirty keys of every stream, asks what is true of each now, judges
// and converts those objects and no others, and places them. One goroutine reads an
// accumulator at a time; further readers make their own, which share the streams.
// All other methods may be called from anywhere.
type Accumulator struct {
	streams *Streams
	options Options
	pacer   *pacer
	fields  []*field

	cancel   context.CancelFunc // of the polling for kinds
	tasks    sync.WaitGroup
	unwatch  func() bool // stops waiting for the context of Watch
	overdue  *time.Timer
	ready    atomic.Bool // complete once
	told     atomic.Bool // the first signal has been given
	finished chan struct{}

	mu  sync.Mutex
	err error // why it ended

	turn   chan struct{} // held by the reader for the time of an Update
	reader reader
}

// field is a query at work. It is guarded by the accumulator's lock.
type field struct {
	query    Query
	resource Resource
	sub      *subscription // nil while the kind is not known
	absent   bool          // the kind is certainly not served
	err      error         // why the kind is not known
	since    time.Time
}

// New starts an accumulator of the queries that runs until ctx ends, or Close. A
// kind that cannot be resolved is an error that names the query, unless the query is
// optional. On an error nothing is left running.
func (s *Streams) New(ctx context.Context, queries []Query, o Options) (*Accumulator, error) {
	if err := causeOf(ctx); err != nil {
		return nil, err
	}
	if o.Overdue <= 0 {
		o.Overdue = 10 * time.Second
	}
	a := &Accumulator{
		streams: s, options: o,
		finished: make(chan struct{}),
		turn:     make(chan struct{}, 1),
	}
	a.pacer = newPacer(o.Pace, a.news)
	pending := false
	for _, q := range queries {
		f := &field{query: q, since: time.Now()}
		r, err := q.Resolve(ctx)
		switch {
		case err == nil:
			f.resource = r
		case q.Optional && ctx.Err() == nil:
			f.err, f.absent, pending = err, errors.Is(err, ErrNotServed), true
		default:
			return nil, fmt.Errorf("query %q: %w", q.Name, err)
		}
		a.fields = append(a.fields, f)
	}
	if err := a.start(ctx, pending); err != nil {
		return nil, err
	}
	return a, nil
}

// start joins the streams. From here on the accumulator ends by end alone.
func (a *Accumulator) start(ctx context.Context, pending bool) error {
	s := a.streams
	life, cancel := context.WithCancel(ctx)
	a.cancel = cancel
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		cancel()
		return ErrClosed
	}
	s.accumulators[a] = struct{}{}
	s.mu.Unlock()
	for _, f := range a.fields {
		if f.err == nil {
			if err := a.attach(f, f.resource); err != nil {
				a.end(err)
				return err
			}
		}
	}
	if pending {
		a.tasks.Go(func() { a.findKinds(life) })
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

// attach joins the stream of a field whose kind is known.
func (a *Accumulator) attach(f *field, r Resource) error {
	sub, err := a.streams.subscribe(r, f.query, a.options.QuietOwnWrites, a.pacer.poke)
	if err != nil {
		return fmt.Errorf("query %q: %w", f.query.Name, err)
	}
	a.mu.Lock()
	ended := a.err != nil
	if !ended {
		f.resource, f.sub, f.err, f.absent = r, sub, nil, false
	}
	a.mu.Unlock()
	if ended {
		sub.close()
	}
	return nil
}

// findKinds looks for the kinds that are not known yet until all of them are, or the
// accumulator ends.
func (a *Accumulator) findKinds(ctx context.Context) {
	for {
		sleep(ctx, a.streams.config.KindPoll)
		if ctx.Err() != nil {
			return
		}
		missing := 0
		for _, f := range a.fields {
			if a.attached(f) != nil {
				continue
			}
			r, err := f.query.Resolve(ctx)
			if err == nil {
				err = a.attach(f, r)
			}
			if err == nil {
				a.pacer.poke() // its first list may have been in before the field was
				continue
			}
			missing++
			a.mu.Lock()
			// Once certain, a kind stays absent: an outage does not bring it back.
			f.err, f.absent = err, f.absent || errors.Is(err, ErrNotServed)
			a.mu.Unlock()
			a.pacer.poke()
		}
		if missing == 0 {
			return
		}
	}
}

func (a *Accumulator) attached(f *field) *subscription {
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.sub
}

// Changed gives a signal when there is something new for Update. It holds at most
// one, and is closed when the accumulator ends. A signal may turn out to be for nothing,
// but none is ever missing.
func (a *Accumulator) Changed() <-chan struct{} { return a.pacer.out }

// complete reports whether every query has its whole first list (G1). It never turns
// back.
func (a *Accumulator) complete() bool {
	if a.ready.Load() {
		return true
	}
	for _, f := range a.fields {
		if !a.fieldComplete(f) {
			return false
		}
	}
	a.ready.Store(true)
	return true
}

func (a *Accumulator) fieldComplete(f *field) bool {
	a.mu.Lock()
	sub, absent := f.sub, f.absent
	a.mu.Unlock()
	if sub == nil {
		return absent
	}
	return sub.ready() || (f.query.Optional && sub.refused())
}

// news reports whether a signal is worth giving.
func (a *Accumulator) news() bool {
	if !a.complete() {
		return false
	}
	if a.told.CompareAndSwap(false, true) {
		return true
	}
	for _, f := range a.fields {
		if sub := a.attached(f); sub != nil && sub.news() {
			return true
		}
	}
	return false
}

// Ready is nil once the first snapshot is complete, and stays so. Before that, and
// after an end that came first, the error says which queries are incomplete and why.
func (a *Accumulator) Ready() error {
	if a.complete() {
		return nil
	}
	return fmt.Errorf("incomplete: %s", strings.Join(a.incomplete(), "; "))
}

// incomplete says which queries hold the first snapshot up, and why.
func (a *Accumulator) incomplete() (why []string) {
	for i, f := range a.fields {
		if a.fieldComplete(f) {
			continue
		}
		st := a.statusOf(i)
		text := fmt.Sprintf("query %q (%s): %s", st.Name, st.Kind, st.State)
		if st.Error != "" {
			text += ": " + st.Error
		}
		why = append(why, text)
	}
	return why
}

func (a *Accumulator) logOverdue() {
	if why := a.incomplete(); len(why) > 0 && a.Err() == nil {
		a.streams.config.Logger.Info("still no complete snapshot",
			"after", a.options.Overdue.String(), "waiting", strings.Join(why, "; "))
	}
}

// Err is nil while the accumulator runs, then the cause of its end: ErrClosed, or
// that of the context of New.
func (a *Accumulator) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Done is closed when the accumulator has ended.
func (a *Accumulator) Done() <-chan struct{} { return a.finished }

// Close ends the accumulator and waits until nothing of it runs any more. Streams
// that nobody else uses end with it.
func (a *Accumulator) Close() {
	a.end(ErrClosed)
	<-a.finished
	a.tasks.Wait()
}

func (a *Accumulator) end(cause error) {
	a.mu.Lock()
	if a.err != nil {
		a.mu.Unlock()
		return
	}
	a.err = cause
	var subs []*subscription
	for _, f := range a.fields {
		if f.sub != nil {
			subs = append(subs, f.sub)
		}
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
		sub.close()
	}
	a.streams.mu.Lock()
	delete(a.streams.accumulators, a)
	a.streams.mu.Unlock()
	a.pacer.close()
	close(a.finished)
}

// causeOf is ctx's error with its cause: a cancellation stays one, whatever the cause.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// holds reports whether o is a value that the last snapshot shows.
func (a *Accumulator) holds(o any) bool {
	obj, ok := o.(Object)
	if !ok {
		return false
	}
	a.reader.mu.Lock()
	defer a.reader.mu.Unlock()
	for _, t := range a.reader.tables {
		if row, ok := t.Get(snapshot.KeyOf(obj)); ok && row.Value == snapshot.Value(o) {
			return true
		}
	}
	return false
}
