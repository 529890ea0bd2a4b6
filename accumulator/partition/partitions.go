package partition

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/snapshot"
)

// Options are the options of [Start]. Pace.Quiet and QuietMax apply to each key: a
// key that changes have made due waits until it has no further changes. The first turns, and keys
// that are activated, do not wait.
type Options struct {
	collect.Options
	// Backoff delays a key after an error. Default: attempts.Default.
	Backoff attempts.Backoff
	// Lasting keeps the objects that belong to every partition in the snapshot of a key that is
	// gone.
	Lasting bool
}

// Partitions turns the watches of several queries into one snapshot per key, see [Query.Key].
// Each snapshot is complete, the latest, and coherent with own writes (G1 to G10). The package's
// documentation says more.
//
// All methods are safe for concurrent use. Several workers may call Next at a time.
type Partitions struct {
	collector *collect.Collector[*index]
	binding   *snapshot.Binding
	backoff   attempts.Backoff
	lasting   bool
	debounce  *debounce // nil without a debounce
	// released: the collector has signalled since waiting keys were last released.
	released atomic.Bool
	// tables is held while the tables change, so that others can read them.
	tables lockorder.Mutex[lockorder.PartitionTables]

	mu    lockorder.Mutex[lockorder.Partitions]
	parts map[string]*partition
	// agenda has the keys of parts. The reads of a running turn are known only when it ends, so
	// each change of a look-up is noted for all running turns.
	agenda *agenda
	takes  int  // how often changes were taken
	begun  bool // changes were taken once
	asked  int  // the value of takes when last a turn ended or keys were activated
	// losing are the partitions that have lost an object. It belongs to the reader's turn.
	losing []*partition
	// lookups has the readers of each field that is a look-up, and nil for other fields.
	lookups []*readers
}

// Start starts partitions of the queries, for a struct type. They run until ctx ends, or Close. The
// objects of a query without a key function belong to every partition. If a kind cannot be
// resolved, and its query is not optional, the error names the query. Start also returns an error
// if the type does not suit the queries, no query has a key function, or the backoff is invalid.
// After an error nothing runs.
func Start(ctx context.Context, s *stream.Set, t reflect.Type, queries []query.Query, o Options) (*Partitions, error) {
	if o.Backoff == (attempts.Backoff{}) {
		o.Backoff = attempts.Default
	}
	if err := o.Backoff.Check(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(queries, func(q query.Query) bool { return q.Key != nil }) {
		return nil, errors.New("no query has a key function: there would be no partition")
	}
	b, err := query.Compile(t, queries)
	if err != nil {
		return nil, err
	}
	lookups, err := lookupsOf(b, queries)
	if err != nil {
		return nil, err
	}
	p := &Partitions{
		binding: b, lookups: lookups, lasting: o.Lasting, debounce: newDebounce(&o.Pace),
		backoff: o.Backoff, parts: make(map[string]*partition),
	}
	p.agenda = newAgenda(p.debounce)
	p.collector, err = collect.New(ctx, s, queries, o.Options, collect.Reader[*index]{
		User: p, Shown: newIndex, Invalid: p.invalidIn, PerKey: true, Waiting: p.waiting, Ended: p.ended,
	})
	if err != nil {
		return nil, err
	}
	for i, f := range p.fields() {
		f.Shown.shared = b.NewTable(i)
	}
	if err := p.collector.Start(ctx); err != nil {
		return nil, err
	}
	if p.debounce != nil {
		life := context.WithoutCancel(ctx) // it ends with the collector
		p.collector.Go(func() { p.attend(life) })
	}
	return p, nil
}

// field is a query with the index of its objects.
type field = collect.Field[*index]

// fields returns those of the snapshots, in the order of the queries. They never change.
func (p *Partitions) fields() []*field { return p.collector.Fields() }

// lookupsOf makes readers for each field that is a look-up.
func lookupsOf(b *snapshot.Binding, queries []query.Query) ([]*readers, error) {
	all := make([]*readers, len(queries))
	for i, q := range queries {
		if !b.IsLookup(i) {
			continue
		}
		if q.Key != nil {
			return nil, q.Error(errors.New("it has a key function, but what is looked up belongs to no partition"))
		}
		all[i] = newReaders()
	}
	return all, nil
}

// Next waits until a key is due, and hands it out. The turn has everything that the watches had
// delivered, and all own writes that had returned, when Next was called. If a turn ended or keys
// were activated before Next returns, this holds for the last such moment. There is no turn
// before all queries are complete.
//
// The error is ctx's, or says why the watch has ended. [Turn.Done] ends the turn.
func (p *Partitions) Next(ctx context.Context) (*Turn, error) {
	for {
		select {
		case <-p.Changed():
			p.released.Store(true)
		default:
		}
		t, err := p.take(ctx, p.next)
		if t != nil {
			if p.pending() {
				p.agenda.notify()
			}
			return t, nil
		}
		if err == nil {
			select {
			case <-p.Changed(): // closed at the end
				p.released.Store(true)
				continue
			case <-p.agenda.signal:
				continue
			case <-p.agenda.rested.C:
				continue
			case <-ctx.Done():
				err = collect.CauseOf(ctx)
			}
		}
		p.agenda.notify() // the wake-up passes to another worker
		return nil, err
	}
}

// Refresh takes the changes, as Next does, but hands out no turn. It is for a program that is
// ready, but does not work yet. The following Next does not wait for a signal.
func (p *Partitions) Refresh(ctx context.Context) error {
	p.released.Store(true)
	_, err := p.take(ctx, nil)
	return err
}

// take takes the changes, and then returns a turn if there is one.
func (p *Partitions) take(ctx context.Context, then func() *Turn) (*Turn, error) {
	if err := p.collector.Enter(ctx); err != nil {
		return nil, err
	}
	defer p.collector.Leave()
	if !p.collector.Complete() || !p.takeIn() || then == nil {
		return nil, nil
	}
	return then(), nil
}

// next hands out the first ready key that has a reason for a turn.
func (p *Partitions) next() *Turn {
	if p.released.Swap(false) {
		p.release()
	} else {
		p.ensureSignal()
	}
	for p.pending() {
		if p.askedMeanwhile() {
			p.takeIn() // the next turn shows what was written before that moment (G4)
			p.ensureSignal()
		}
		if t := p.hand(); t != nil {
			return t
		}
	}
	return nil
}

// takeIn takes the changes. It returns false if there is no first snapshot yet.
func (p *Partitions) takeIn() bool {
	p.mu.Lock()
	p.takes++
	p.mu.Unlock()
	if !p.collector.Take(p.fields()) {
		return false
	}
	p.advance()
	return true
}

// askedMeanwhile reports whether a turn has ended, or keys were activated, since the current take
// began.
func (p *Partitions) askedMeanwhile() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked == p.takes
}

// Keys are those that there are partitions of, in order, as of the last turn that was handed out.
func (p *Partitions) Keys() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.parts))
}

// Changed signals that there is something new, for callers of Refresh. It holds at most one signal,
// and is closed at the end. A signal may be spurious, but none is lost.
func (p *Partitions) Changed() <-chan struct{} {
	if p.debounce != nil {
		return p.debounce.changed
	}
	return p.collector.Changed()
}

// Ready is nil once every query has its whole first list, and stays nil. Before that, the error
// says which queries are incomplete and why.
func (p *Partitions) Ready() error { return p.collector.Ready() }

// Status returns the state of each query, in the order of the queries.
func (p *Partitions) Status() []query.Status { return p.collector.Status() }

// Sync returns when every stream is as new as the server was at the call, or with ctx's error. A
// resource that does not exist, or that the client may not read, is no error if the server says so
// again: what is shown of it stays.
func (p *Partitions) Sync(ctx context.Context) error { return p.collector.Sync(ctx) }

// Err is nil while the partitions run. Then it is the cause of the end: [stream.ErrClosed], or the
// cause of the context of Start.
func (p *Partitions) Err() error { return p.collector.Err() }

// Done is closed when the partitions have ended.
func (p *Partitions) Done() <-chan struct{} { return p.collector.Done() }

// Close ends the partitions, and waits until all their goroutines have ended. Streams that have no
// other listener end too. It does not wait for turns that run.
func (p *Partitions) Close() { p.collector.Close() }

// ended stops the timers at the end.
func (p *Partitions) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agenda.close()
}

// Shares reports whether o is a value that a turn shows, or points into a slice of a partition's
// last turn. An index knows its own values, and the elements of slices that all partitions share.
func (p *Partitions) Shares(o any) bool {
	return p.indexed(o) || p.sliced(o)
}

func (p *Partitions) indexed(o any) bool {
	p.tables.Lock()
	defer p.tables.Unlock()
	object, ok := o.(stream.Object)
	return slices.ContainsFunc(p.fields(), func(f *field) bool {
		return ok && f.Shown.shows(object) || f.Shown.shared.Contains(o)
	})
}

func (p *Partitions) sliced(o any) bool {
	fields := p.binding.SlicesOf(o)
	if fields == nil {
		return false // the usual case: o is an object, and slices hold pointers to objects
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tables.Lock()
	defer p.tables.Unlock()
	for _, part := range p.parts {
		for _, i := range fields {
			if table := part.shares[i].table; table != nil && table.Contains(o) {
				return true
			}
		}
	}
	return false
}
