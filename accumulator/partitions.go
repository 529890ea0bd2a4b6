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

// PartitionOptions of [stream.Set.Partition]. Pace.Quiet and QuietMax are each key's own: one that changes have made due waits until nothing
// more has changed for it. What there is at first, and what is activated, does not wait.
type PartitionOptions struct {
	Options
	// Backoff after errors of a key. Default: attempts.Default.
	Backoff attempts.Backoff
	// Lasting: the snapshot of a key that is gone has the objects that belong to every partition all the same.
	Lasting bool
}

// Partitions turns the watches of several queries into one snapshot per key: what [Query.Key] puts together. Each is complete,
// the latest, and coherent with own writes as a whole one is (G1 to G10). See the package's documentation, Partitions.
//
// All methods may be called from anywhere, Next by several workers at a time.
type Partitions struct {
	a        *Accumulator
	typ      reflect.Type
	binding  *snapshot.Binding
	backoff  attempts.Backoff
	lasting  bool
	debounce *debounce // nil if there is none
	// released: the accumulator has signalled since keys were last put into the queue.
	released atomic.Bool

	mu    lockorder.Mutex[lockorder.Partitions]
	parts map[string]*partition
	// agenda has the keys of parts. What runs there has a turn: what that reads in a field that is looked
	// up in is not known before it ends, so each change of such a field is noted for all that run.
	agenda *agenda
	takes  int  // how often what is new was taken in
	begun  bool // something was
	asked  int  // as of which of these a turn has ended, or keys were activated, last
	// losing have lost an object. Of the reader's turn.
	losing []*partition
	// lookups is, of each field that is looked up in, who has read what; nil of others.
	lookups []*readers
}

// Partition starts partitions of the queries, for a struct type, that run until ctx ends, or Close. A query without a
// key function is one whose objects belong to every partition. Errors are those of [stream.Set.New]; and a type that does not suit the
// queries, queries of which none has a key function, or a backoff that makes no sense.
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

// lookupsOf has readers for each field that is looked up in.
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

// Next waits until there is a key to be handed out, and hands it out: with everything that the watches had delivered, and all own writes
// that were over, when it was called; and if later, before it returns, a turn ended or keys were activated, when the last of that
// happened. There is none before all queries are complete.
//
// The error is ctx's, or says why the watch has ended. What is handed out is over with [Turn.Done].
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
		p.agenda.nudge() // whatever woke this one is another's now
		return nil, err
	}
}

// Refresh takes in what is new, as Next does, and hands nothing out: for who wants to be ready, but not at work yet. Next does not wait for a
// signal then.
func (p *Partitions) Refresh(ctx context.Context) error {
	p.released.Store(true)
	_, err := p.take(ctx, nil)
	return err
}

// take takes in what is new, and then returns a turn if there is one.
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

// next hands out the first key that is ready and that there is a reason for.
func (p *Partitions) next(b layout) *Turn {
	if p.released.Swap(false) {
		p.release()
	} else {
		p.ensureSignal()
	}
	for p.pending() {
		if p.askedMeanwhile() {
			p.takeIn(b) // what was written in that turn, or before somebody activated keys, is in the next one (G4)
			p.ensureSignal()
		}
		if t := p.hand(b); t != nil {
			return t
		}
	}
	return nil
}

// takeIn takes in what is new. It reports false where there is no first snapshot yet.
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

// askedMeanwhile reports whether a turn has ended, or keys were activated, since what is new began to be taken in.
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

// Changed is [Accumulator.Changed], for who calls Refresh.
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

// Close is [Accumulator.Close]: it waits for no turn that is under way.
func (p *Partitions) Close() { p.a.Close() }

// ended stops the timers when the accumulator ends.
func (p *Partitions) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agenda.close()
}
