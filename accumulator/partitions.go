package accumulator

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/snapshot"
)

// PartitionOptions are the options of [Partition]. Pace.Quiet and QuietMax apply to each key: a
// key that changes have made due waits until it has no further changes. The first turns, and keys
// that are activated, do not wait.
type PartitionOptions struct {
	Options
	// Backoff delays a key after an error. Default: attempts.Default.
	Backoff attempts.Backoff
	// Lasting keeps the objects that belong to every partition in the snapshot of a key that is
	// gone.
	Lasting bool
}

// Partitions turns the watches of several queries into one snapshot per key, see [Query.Key].
// Each snapshot is complete, the latest, and coherent with own writes (G1 to G10). The package's
// documentation, Partitions, says more.
//
// All methods are safe for concurrent use. Several workers may call Next at a time.
type Partitions struct {
	a        *Accumulator
	typ      reflect.Type
	binding  *snapshot.Binding
	backoff  attempts.Backoff
	lasting  bool
	debounce *debounce // nil without a debounce
	// released: the accumulator has signalled since waiting keys were last released.
	released atomic.Bool

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

// Partition starts partitions of the queries, for a struct type. They run until ctx ends, or
// Close. The objects of a query without a key function belong to every partition. The errors are
// those of [New]; besides, Partition returns an error if the type does not suit the queries, no
// query has a key function, or the backoff is invalid.
func Partition(ctx context.Context, s *stream.Set, t reflect.Type, queries []Query, o PartitionOptions) (*Partitions, error) {
	if o.Backoff == (attempts.Backoff{}) {
		o.Backoff = attempts.Default
	}
	if err := o.Backoff.Check(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(queries, func(q Query) bool { return q.Key != nil }) {
		return nil, errors.New("no query has a key function: there would be no partition")
	}
	b, err := compile(t, queries)
	if err != nil {
		return nil, err
	}
	lookups, err := lookupsOf(b, queries)
	if err != nil {
		return nil, err
	}
	p := &Partitions{
		typ: t, binding: b, lookups: lookups, lasting: o.Lasting, debounce: newDebounce(&o.Pace),
		backoff: o.Backoff, parts: make(map[string]*partition),
	}
	p.agenda = newAgenda(p.debounce)
	a, err := start(ctx, s, queries, o.Options, p)
	if err != nil {
		return nil, err
	}
	if p.debounce != nil {
		life := context.WithoutCancel(ctx) // it ends with the accumulator
		a.tasks.Go(func() { p.attend(life) })
	}
	return p, nil
}

// lookupsOf makes readers for each field that is a look-up.
func lookupsOf(b *snapshot.Binding, queries []Query) ([]*readers, error) {
	all := make([]*readers, len(queries))
	for i, q := range queries {
		if !b.IsLookup(i) {
			continue
		}
		if q.Key != nil {
			return nil, queryError(q, errors.New("it has a key function, but what is looked up belongs to no partition"))
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
				p.agenda.nudge()
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
				err = causeOf(ctx)
			}
		}
		p.agenda.nudge() // the wake-up passes to another worker
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
func (p *Partitions) take(ctx context.Context, then func(layout) *Turn) (*Turn, error) {
	if err := p.a.enter(ctx); err != nil {
		return nil, err
	}
	defer p.a.leave()
	b, err := p.a.bind(p.typ)
	if err != nil {
		return nil, err
	}
	p.open(b)
	if !p.a.complete() || !p.takeIn(b) {
		return nil, nil
	}
	if then == nil {
		return nil, nil
	}
	return then(b), nil
}

// next hands out the first ready key that has a reason for a turn.
func (p *Partitions) next(b layout) *Turn {
	if p.released.Swap(false) {
		p.release()
	} else {
		p.ensureSignal()
	}
	for p.pending() {
		if p.askedMeanwhile() {
			p.takeIn(b) // the next turn shows what was written before that moment (G4)
			p.ensureSignal()
		}
		if t := p.hand(b); t != nil {
			return t
		}
	}
	return nil
}

// takeIn takes the changes. It returns false if there is no first snapshot yet.
func (p *Partitions) takeIn(b layout) bool {
	p.mu.Lock()
	p.takes++
	p.mu.Unlock()
	if !p.a.takeAll(b) {
		return false
	}
	p.advance(b)
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

// Changed is [Accumulator.Changed], for callers of Refresh.
func (p *Partitions) Changed() <-chan struct{} {
	if p.debounce != nil {
		return p.debounce.changed
	}
	return p.a.Changed()
}

// Ready is [Accumulator.Ready].
func (p *Partitions) Ready() error { return p.a.Ready() }

// Status is [Accumulator.Status].
func (p *Partitions) Status() []QueryStatus { return p.a.Status() }

// Sync is [Accumulator.Sync].
func (p *Partitions) Sync(ctx context.Context) error { return p.a.Sync(ctx) }

// Err is [Accumulator.Err].
func (p *Partitions) Err() error { return p.a.Err() }

// Done is [Accumulator.Done].
func (p *Partitions) Done() <-chan struct{} { return p.a.Done() }

// Close is [Accumulator.Close]. It does not wait for turns that run.
func (p *Partitions) Close() { p.a.Close() }

// ended stops the timers when the accumulator ends.
func (p *Partitions) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agenda.close()
}
