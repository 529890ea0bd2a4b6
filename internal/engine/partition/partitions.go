package partition

import (
	"context"
	"reflect"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/loops/attempts"
)

// Options are the options of [Start]. Pace.Quiet and QuietMax apply to each key: a key that
// changes have made due waits until it has no further changes. The first turns, and keys that are
// activated, do not wait.
type Options struct {
	collect.Options
	// Backoff delays a key after an error. Default: attempts.Default.
	Backoff attempts.Backoff
	// Lasting keeps the objects that belong to every partition in the snapshot of a key that is
	// gone.
	Lasting bool
	// Former are keys that had turns before these partitions started. If no object has such a key
	// when all queries are complete, it has a last turn, as a key that is gone.
	Former []string
	// Sharing, if not nil, is how replicas divide the keys. The queries bring nothing of what is
	// divided before [Partitions.Share].
	Sharing *Sharing
}

// readersTurn is what belongs to the reader's turn.
type readersTurn struct {
	current    []*field // the queries that there are; the indexes have the removed ones, too
	generation int      // of these
	quiet      bool     // some changes are worth no signal
	// torn: the last take had a change for all partitions, and may lack a key that came before it.
	torn bool
}

// Start starts partitions of the queries, for a struct type. They run until ctx ends, or Close.
// The objects of a query without a key function belong to every partition. If a kind cannot be
// resolved, and its query is not optional, the error names the query. Start also returns an error
// if the type does not suit the queries, no query has a key function, or the backoff is invalid.
// After an error nothing runs.
func Start(ctx context.Context, s *streamset.Set, t reflect.Type, queries []query.Query, o Options) (*Partitions, error) {
	if o.Backoff == (attempts.Backoff{}) {
		o.Backoff = attempts.Default
	}
	if err := o.Backoff.Check(); err != nil {
		return nil, err
	}
	p := &Partitions{indexes: &indexes{typ: t, lasting: o.Lasting}, quietOwn: o.QuietOwnWrites}
	debounce := debounceOf(&o.Pace)
	if debounce.Quiet > 0 {
		p.changed = make(chan struct{}, 1)
	}
	if err := p.indexes.suits(queries); err != nil {
		return nil, err
	}
	if o.Sharing != nil {
		p.sharing = &sharing{Sharing: *o.Sharing, changing: make(chan struct{}, 1)}
		queries = p.marked(queries, queries)
	}
	p.scheduler = newScheduler(len(reflect.VisibleFields(t)), o.Backoff, debounce)
	p.scheduler.expect(o.Former)
	var err error
	p.collector, err = collect.New(ctx, s, queries, o.Options, collect.Reader[*index]{
		User: p, Shown: newIndex, Invalid: p.indexes.invalidIn, PerKey: true,
		Check: p.indexes.suits, Waiting: p.scheduler.agenda.Waiting, Ended: p.scheduler.close,
	})
	if err != nil {
		return nil, err
	}
	if err := p.adapt(); err != nil {
		return nil, err
	}
	if err := p.collector.Start(ctx); err != nil {
		return nil, err
	}
	p.startDebounce(ctx)
	return p, nil
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
			p.release()
		default:
		}
		t, err := p.take(ctx, p.next)
		if t != nil {
			if p.scheduler.pending() {
				p.scheduler.agenda.WakeWorker()
			}
			return t, nil
		}
		if err == nil {
			select {
			case <-p.Changed(): // closed at the end
				p.release()
				continue
			case <-p.scheduler.agenda.KeyReady():
				continue
			case <-p.scheduler.agenda.RestOver():
				continue
			case <-ctx.Done():
				err = collect.CauseOf(ctx)
			}
		}
		p.scheduler.agenda.WakeWorker() // the wake-up passes to another worker
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

// Keys are those that there are partitions of, in order, as of the last turn that was handed out.
func (p *Partitions) Keys() []string { return p.scheduler.keys() }

// Trigger makes the partitions of these keys due, even if nothing has changed. It ignores keys
// without a partition. A key that runs, or rests after an error, is due after that.
func (p *Partitions) Trigger(keys ...string) { p.scheduler.activateKeys(keys) }

// TriggerAll is [Partitions.Trigger] for all partitions.
func (p *Partitions) TriggerAll() { p.scheduler.activateAll() }

// Changed signals that there is something new, for callers of Refresh. It holds at most one
// signal, and is closed at the end. A signal may be spurious, but none is lost.
func (p *Partitions) Changed() <-chan struct{} {
	if p.changed != nil {
		return p.changed
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

// Shares reports whether o is a value that a turn shows, or points into a slice of a partition's
// last turn. An index knows its own values, and the elements of slices that all partitions share.
func (p *Partitions) Shares(o any) bool {
	if p.indexes.contain(o) {
		return true
	}
	slices := p.indexes.slicesOf(o)
	if slices == nil {
		return false // the usual case: o is an object, and slices hold pointers to objects
	}
	return p.scheduler.any(func(part *partition) bool { return p.indexes.sliced(part, slices, o) })
}
