package accumulator

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// Accumulator turns the watches of several queries into one snapshot. The first one is complete
// (G1), each is the latest (G2), changes coalesce and never queue (G3), and the client's own
// writes are in it (G4, G5).
//
//	queries ──batches──▶ tables ──Update──▶ the caller's struct
//	   └──wake──▶ pacer ──▶ Changed
//
// Update takes the changes of every query, judges and converts those objects and no others, and
// places them. One goroutine reads an accumulator at a time; further readers make their own
// accumulators, which share the streams. All other methods are safe for concurrent use.
type Accumulator struct {
	collector *collect.Collector[*content]
	streams   *streamset.Set
	leisure   sync.WaitGroup // copies for the next snapshot
	rejudge   atomic.Bool    // the next Update judges every object again

	// The rest belongs to the reader's turn.
	fields     []*field // of the last snapshot
	generation int
	binding    *snapshot.Binding
	bindings   map[reflect.Type]*snapshot.Binding // of this generation
	retired    map[string]bool                    // fields to be nil: their query was removed
	judgement  Judgement
	judgements judgements
	invalid    []tables.Invalid // of the last snapshot

	// tables is held while the tables change, so that others can read them.
	tables lockorder.Mutex[lockorder.Tables]
}

// field is a query with the content of its field.
type field = collect.Field[*content]

// New starts an accumulator of the queries. It runs until ctx ends, or Close. If a kind cannot be
// resolved, and its query is not optional, New returns an error that names the query. After an
// error nothing runs.
func New(ctx context.Context, s *streamset.Set, queries []query.Query, o collect.Options) (*Accumulator, error) {
	a := &Accumulator{streams: s}
	c, err := collect.New(ctx, s, queries, o, collect.Reader[*content]{
		User: user{a}, Shown: func() *content { return &content{} }, Invalid: a.invalidIn, Waiting: a.rejudge.Load,
	})
	if err != nil {
		return nil, err
	}
	a.collector = c
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// Changed signals that there is something new for Update. It holds at most one signal, and is
// closed when the accumulator ends. A signal may be spurious, but none is lost.
func (a *Accumulator) Changed() <-chan struct{} { return a.collector.Changed() }

// Ready is nil once the first snapshot is complete, and stays nil. Before that, the error says
// which queries are incomplete and why.
func (a *Accumulator) Ready() error { return a.collector.Ready() }

// Status returns the state of each query, in the order of the queries.
func (a *Accumulator) Status() []query.Status { return a.collector.Status() }

// Sync returns when every stream is as new as the server was at the call, or with ctx's error. A
// resource that does not exist, or that the client may not read, is no error if the server says so
// again: what is shown of it stays.
func (a *Accumulator) Sync(ctx context.Context) error { return a.collector.Sync(ctx) }

// Add adds queries. Snapshots and signals of the others go on. All new queries are in one
// snapshot, as soon as each has its whole first list. Add returns an error, and adds none of them,
// if a name is taken, or if a kind cannot be resolved and its query is not optional.
func (a *Accumulator) Add(ctx context.Context, queries ...query.Query) error {
	return a.collector.Add(ctx, queries...)
}

// Remove removes queries. The next snapshot lacks their objects, and its differences have them as
// deletes.
func (a *Accumulator) Remove(ctx context.Context, names ...string) error {
	return a.collector.Remove(ctx, names...)
}

// Replace replaces the queries of these names: other namespaces, selectors, another kind. The old
// ones go on until each new one can be shown: then one snapshot has all objects of the new ones,
// and none that only the old ones had. An object of both stays as it is. A query that is replaced
// again before that is left out, and the others wait for the newest. An error changes nothing.
func (a *Accumulator) Replace(ctx context.Context, queries ...query.Query) error {
	return a.collector.Replace(ctx, queries...)
}

// Given returns what a query that is wanted was made of, nil if there is none of that name.
func (a *Accumulator) Given(name string) *query.Given { return a.collector.Given(name) }

// Err is nil while the accumulator runs. Then it is the cause of the end: [stream.ErrClosed], or
// the cause of the context of New.
func (a *Accumulator) Err() error { return a.collector.Err() }

// Done is closed when the accumulator has ended.
func (a *Accumulator) Done() <-chan struct{} { return a.collector.Done() }

// Close ends the accumulator, and waits until all its goroutines have ended. Streams that have no
// other listener end too.
func (a *Accumulator) Close() { a.collector.Close() }

func queriesOf(fields []*field) (all []query.Query) {
	for _, f := range fields {
		all = append(all, f.Query.Query())
	}
	return all
}

// Result is the result of an Update.
type Result struct {
	// Complete: every query has its first list, and the target is filled.
	Complete bool
	// Changed: the snapshot differs from the last one.
	Changed bool
	// Differences from the last snapshot, by query, then namespace and name.
	Differences []tables.Difference
	// Invalid objects, by query, then namespace and name. They are shared: do not write to them.
	Invalid []tables.Invalid
}

// Judgement sets the predicate of an Update. It stays in force until it is replaced.
type Judgement struct {
	predicate func(*unstructured.Unstructured) (pass bool, why error)
	counts    bool          // a change of an object that it leaves out is one of the snapshot
	place     uintptr       // of the code
	function  object.FuncID // the code and what it has captured
}

// judgements counts what was to be judged again, for all objects and for a query's.
type judgements struct {
	all      int // every object
	panicked int // those for which the predicate has panicked
}

// Judge is the judgement by a predicate; nil lets all objects pass. The predicate decides on an
// object, as its query holds it, whether the object is part of the snapshot. If the predicate
// returns an error, the object is left out as invalid for that reason. The predicate is called
// without locks and must not write to its argument. A predicate from another place
// in the code judges every object again. One from the same place does not: a closure that is made
// anew for each Update counts as the same, but for objects for which the one before has panicked.
// See [Accumulator.Rejudge].
func Judge(f func(*unstructured.Unstructured) (pass bool, why error)) *Judgement {
	if f == nil {
		return &Judgement{}
	}
	return &Judgement{predicate: f, place: reflect.ValueOf(f).Pointer(), function: object.FuncIDOf(f)}
}

// Pass is [Judge] for a predicate without reasons. It may have noted one by itself for an object
// that it leaves out, so each change of such an object is a change of the snapshot.
func Pass(f func(*unstructured.Unstructured) bool) *Judgement {
	if f == nil {
		return &Judgement{}
	}
	return &Judgement{
		predicate: func(u *unstructured.Unstructured) (bool, error) { return f(u), nil },
		counts:    true, place: reflect.ValueOf(f).Pointer(), function: object.FuncIDOf(f),
	}
}
