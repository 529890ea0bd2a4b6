package kates

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/keyed"
	objects "github.com/kates-go/kates/internal/object"
)

// RunEach calls a function with the snapshot of each key (see [WatchEach]). It calls it once for
// each existing key when all kinds are complete, and again whenever something has changed for a
// key, with the key's current snapshot. It is the loop of a program that has one output per
// something, and that one poisoned input must not stop.
//
//	err := kates.RunEach(ctx, client, func(ctx context.Context, tenant string, snap *Tenant) error {
//	    return rebuild(ctx, tenant, snap) // an empty snapshot: the tenant is gone
//	}, kates.Query{Name: "Namespaces", Key: kates.ByName}, kates.Query{Name: "Quotas", Key: kates.ByNamespace}, kates.WithWorkers(4))
//
// The options are those of [Run], [WithWorkers] and [Sharding]. With several workers the function
// runs for several keys at the same time, and never twice at a time for one key. Its context ends
// when that of RunEach does, unless [WithShutdownTimeout] says otherwise. RunEach returns when all
// calls have returned.
//
// A key of which something has changed, or that is triggered, goes before keys that wait for their
// first call, or are due because of a change that concerns all. One call of five is theirs.
//
// An error means another try for that key alone, with its newest snapshot, after its backoff
// ([WithBackoff]), however much changes meanwhile. A panic is such an error, a [*PanicError].
// [Permanent] marks an error that ends RunEach, whatever its key. [Again] and [AgainWithBackoff]
// ask for another call for the key. Each error is a [*KeyError].
// Errors are logged as those of Run are, for each key, and given to [WithOnError], which several
// workers may call at a time. A value of [WithTriggers] calls for all keys. With [LeaderElection]
// followers keep all snapshots up to date, and a new leader calls for every key.
//
// When no object has a key any more, and the function was called with that key, it is called once
// more with an empty snapshot, until it returns no error. Objects of the key that do not decode
// are left out, which may leave no object at all: a field of [][Invalid] has them.
//
// It returns what [Run] returns; and an error if the function has ended its goroutine
// (runtime.Goexit, as FailNow of a test does).
func RunEach[S any](ctx context.Context, c *Client, f func(ctx context.Context, key string, snap *S) error, options ...RunOption) error {
	t := reflect.TypeFor[S]()
	settings, err := newRunSettings(c, f == nil, options)
	if err == nil {
		err = settings.divideKeys(c)
	}
	if err != nil {
		return fmt.Errorf("run each %s: %w", objects.TypeName(t), err)
	}
	release, err := take(settings.handles)
	if err != nil {
		return fmt.Errorf("run each %s: %w", objects.TypeName(t), err)
	}
	defer release()
	config := settings.config(c, t.String(), settings.logOf(c, "run", t.String()))
	ctx, grace, stop, err := config.Shutdown.Begin(ctx, config.Log)
	if err != nil {
		return fmt.Errorf("run each %s: %w", t, err)
	}
	defer stop()
	partitions, end, err := keyed.Outlive(ctx, grace, func(life context.Context) (*Partitions[S], error) {
		return watchEach[S](life, c.With(settings.watch...), settings.queries, partition.Options{
			Backoff: settings.policy.Backoff, Former: settings.cluster.Known.Keys(), Sharing: settings.division.sharing(),
		})
	})
	if err != nil {
		return keyed.Lacking(config.Log, err, endOfRun(ctx, t, config.Unstarted(err)))
	}
	defer end()
	defer partitions.Close()
	bind(settings.handles, partitions)
	all := each[S]{partitionWatch{partitions.partitioned}, partitions, f, settings.cluster.Known}
	loop := &keyed.Loop[eachTurn[S]]{Config: config, Source: all, Work: all, Grace: grace}
	err = loop.Run(ctx)
	return keyed.Lacking(config.Log, partitions.Ready(), endOfRun(ctx, t, err))
}

// each is a RunEach: the turns of a loop, and the work.
type each[S any] struct {
	partitionWatch
	partitions *Partitions[S]
	f          func(context.Context, string, *S) error
	known      *keyed.Known // nil: nobody wants to know
}

var (
	_ keyed.Work[eachTurn[struct{}]]   = each[struct{}]{}
	_ keyed.Source[eachTurn[struct{}]] = each[struct{}]{}
)

// Begin implements [keyed.Work].
func (e each[S]) Begin(_ eachTurn[S], ours bool) bool { return ours }

// Call implements [keyed.Work].
func (e each[S]) Call(ctx context.Context, turn eachTurn[S], _ int) error {
	return e.f(ctx, turn.Name(), turn.snapshot)
}

// End implements [keyed.Work].
func (e each[S]) End(turn eachTurn[S], o keyed.Outcome) error {
	if o.Cut { // the key is another replica's, or this one calls for it again; or all is over
		turn.Yield()
		return nil
	}
	if o.Requeue {
		turn.Keep() // also a key that is gone
		return nil
	}
	if o.Err == nil && turn.turn.Gone {
		e.known.Gone(turn.Name())
	}
	turn.Done(o.Err)
	if o.Final {
		return o.Err
	}
	return nil
}

// Next implements [keyed.Source].
func (e each[S]) Next(ctx context.Context) (eachTurn[S], error) {
	turn, err := e.partitions.Next(ctx)
	if err != nil {
		return eachTurn[S]{}, e.because(err)
	}
	return eachTurn[S]{turn.turn, turn.Snapshot}, nil
}

// partitionWatch is partitions as the [keyed.Watch] of a loop, and its [keyed.Keys]: what package
// keyed wants beyond what is public.
type partitionWatch struct{ *partitioned }

func (p partitionWatch) Changed() <-chan struct{}       { return p.all.Changed() }
func (p partitionWatch) Sync(ctx context.Context) error { return p.all.Sync(ctx) }
func (p partitionWatch) Done() <-chan struct{}          { return p.all.Done() }
func (p partitionWatch) Hash(key string) uint64         { return p.all.Hash(key) }
func (p partitionWatch) Loads() []shardrange.Load       { return p.all.Loads() }
func (p partitionWatch) Streams() string                { return streamsOf(p.all.Status()) }

func (p partitionWatch) Share(ctx context.Context, need shardrange.Ranges) error {
	return p.all.Share(ctx, need)
}

func (p partitionWatch) Err() error { return p.all.Err() }

func (p partitionWatch) Refresh(ctx context.Context) error {
	if err := p.all.Refresh(ctx); err != nil {
		return p.because(err)
	}
	return nil
}

// eachTurn is a turn of partitions in a loop.
type eachTurn[S any] struct {
	*keyTurn
	snapshot *S
}

// Yield implements [keyed.Turn].
func (t eachTurn[S]) Yield() {
	if t.end(true) {
		t.turn.Keep() // also a key that is gone
		t.of.Trigger(t.Name())
	}
}

// Partitions hands out snapshots of type S by key: a struct with the objects that belong to it.
// See [WatchEach].
type Partitions[S any] struct{ *partitioned }

// partitioned is partitions of a struct type.
type partitioned struct {
	client *Client
	all    *partition.Partitions
	begin  func(context.Context) context.Context // of the client
	// deltas and invalid are the indexes of those fields, if any.
	deltas, invalid []int

	mu     lockorder.Mutex[lockorder.TurnChanges]
	blank  *changes            // of no key
	failed map[string]*changes // of turns whose changes the next one has, too
}

func newPartitioned(c *Client, t reflect.Type, all *partition.Partitions, f compile.Struct) *partitioned {
	p := &partitioned{client: c, all: all, begin: c.withHorizon, deltas: f.Reports[0].Index, invalid: f.Reports[1].Index, failed: make(map[string]*changes)}
	p.blank = newChanges(t)
	return p
}

// Turn is the time of one key of [Partitions]: no other turn has the key until [Turn.Done].
type Turn[S any] struct {
	// Key of the partition.
	Key string
	// Snapshot has its objects, and those of every partition. It is the caller's; the objects are
	// shared and read-only.
	Snapshot *S
	// Gone: no object has the key any more. The snapshot is empty, also of what belongs to every
	// partition, and the output of the key can be removed. A [Lookup] can be read as ever.
	Gone bool
	// Attempt is 1, or more after turns of the key that ended with an error, in a row.
	Attempt int

	turn *keyTurn
}

// keyTurn is the turn of a key, and a [keyed.Turn] but for Yield. It ends once, by whichever
// method is called first.
type keyTurn struct {
	of      *partitioned
	turn    *partition.Turn
	changes *changes // nil if the struct has no field for deltas
	ended   atomic.Bool
}

// WatchEach starts watching what the exported fields of the struct S say, as [Watch] does, until
// ctx ends or Close. It is for a program that has one output per something: per namespace, per
// tenant, per gateway. [Query.Key] says to which keys an object belongs; each key has a snapshot
// of its own:
//
//	type Tenant struct {
//	    Namespaces []*kates.Namespace
//	    Quotas     []*corev1.ResourceQuota
//	    Policies   []*Policy // has no Key: all of it belongs to every tenant
//	}
//
//	tenants, err := kates.WatchEach[Tenant](ctx, client,
//	    kates.Query{Name: "Namespaces", Key: kates.ByName},
//	    kates.Query{Name: "Quotas", Key: kates.ByNamespace})
//	if err != nil { ... }
//	for {
//	    turn, err := tenants.Next(ctx)
//	    if err != nil { ... }
//	    turn.Done(rebuild(ctx, turn.Key, turn.Snapshot))
//	}
//
// [RunEach] is that loop, with workers.
//
// A key's snapshot has the same guarantees as a whole one (see the package's documentation). An
// object that did not change since the key's last turn is the same pointer. A key has a turn when
// one of its objects has changed since the last one, and the change is worth a signal. An object
// that moves from one key to another activates both. A change of an object that belongs to every
// partition activates all. A key exists as long as an object of its own has it.
//
// When the last object of a key is gone, the key has one more turn, empty ([Turn.Gone]), so that
// its output can be removed. Only a program that has had a turn of the key gets it: what was
// deleted while the program did not run is not reported.
//
// A field of []*[Delta] says what has changed since the key's last turn that ended without an
// error; a field of [][Invalid] says which objects of the key are left out. An object whose Key
// panics is left out of its former partitions until its next version. [WithOnInvalid] and Status
// report it even if it never was in one.
//
// Errors are those of Watch, and one if no query has a Key. On an error nothing is left running.
func WatchEach[S any](ctx context.Context, c *Client, queries ...Query) (*Partitions[S], error) {
	return watchEach[S](ctx, c, queries, partition.Options{Backoff: attempts.Default})
}

func watchEach[S any](ctx context.Context, c *Client, queries []Query, o partition.Options) (*Partitions[S], error) {
	t := reflect.TypeFor[S]()
	if c == nil {
		return nil, fmt.Errorf("watch each %s: %w", objects.TypeName(t), errNoClient)
	}
	fields, err := c.compiler().Fields(ctx, compile.Struct{Reports: reports}, t, wantedOf(queries))
	if err == nil {
		err = compile.CheckStruct(t, fields.Wanted)
	}
	var compiled []query.Query
	if err == nil {
		compiled, err = c.compiler().All(fields.Wanted)
	}
	if err != nil {
		return nil, reach.First(fmt.Errorf("watch each %s: %w", objects.TypeName(t), err))
	}
	o.Options = c.options(c.watch.get(), watchOf(t, fields.Wanted))
	all, err := partition.Start(ctx, c.core.Streams, t, compiled, o)
	if err != nil {
		return nil, reach.First(fmt.Errorf("watch each %s: %w", objects.TypeName(t), err))
	}
	return &Partitions[S]{newPartitioned(c, t, all, fields)}, nil
}

// Next waits until a key is due, and hands it out. Several workers may call it at a time: no key
// is in two turns. The turn has everything that the watches had delivered, and this client had
// written, when Next was called. If a turn ended, or keys were activated, before Next returned,
// it has everything up to the last of these events. There is no turn before all queries are
// complete.
//
// The error is that of ctx, or the cause of the watch's end. The end of ctx does not end the
// watch.
func (p *Partitions[S]) Next(ctx context.Context) (*Turn[S], error) {
	turn, err := p.all.Next(ctx)
	if err != nil {
		return nil, err
	}
	snap := turn.Snapshot.(*S)
	return &Turn[S]{
		Key: turn.Key, Snapshot: snap, Gone: turn.Gone, Attempt: turn.Attempt,
		turn: p.turnOf(turn, reflect.ValueOf(snap).Elem()),
	}, nil
}

// turnOf returns a turn, and fills the deltas and the invalid objects into its struct.
func (p *partitioned) turnOf(turn *partition.Turn, into reflect.Value) *keyTurn {
	t := &keyTurn{of: p, turn: turn}
	if p.deltas != nil {
		t.changes = p.changesOf(turn.Key)
		t.changes.add(deltasOf(turn.Differences))
		into.FieldByIndex(p.deltas).Set(reflect.ValueOf(t.changes.deltas()))
	}
	if p.invalid != nil {
		into.FieldByIndex(p.invalid).Set(reflect.ValueOf(invalidsOf(turn.Invalid)))
	}
	return t
}

// changesOf are those of a key since its last turn without an error. They belong to the key's
// turn.
func (p *partitioned) changesOf(key string) *changes {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.failed[key]; c != nil {
		return c
	}
	return &changes{order: p.blank.order, of: make(map[place]*change)}
}

// Done ends the turn. Without an error the key has its next turn when something of it changes, or
// has changed since. With an error the key has its next turn when its backoff is over, whatever
// changes: 100 ms after the first error, twice as long after each further one in a row, up to a
// minute. End each turn once, from any goroutine. Further calls do nothing, even if the key is in
// another turn.
func (t *Turn[S]) Done(err error) { t.turn.Done(err) }

// Context returns ctx, which Next was called with, for what is done in the turn. Where ctx is
// bound to a lease, the preconditions of writes are about what was known when Context was called.
// Call it at once (see [LeaderElection]). [RunEach] does so.
func (t *Turn[S]) Context(ctx context.Context) context.Context { return t.turn.Context(ctx) }

func (t *keyTurn) Name() string                                { return t.turn.Key }
func (t *keyTurn) Context(ctx context.Context) context.Context { return t.of.begin(ctx) }
func (t *keyTurn) Ready() time.Time                            { return t.turn.Ready }

func (t *keyTurn) Done(err error) {
	if t.end(err != nil) {
		t.turn.Done(err)
	}
}

func (t *keyTurn) Again(after time.Duration) {
	if t.end(true) {
		t.turn.Again(after)
	}
}

func (t *keyTurn) Keep() {
	if t.end(false) {
		t.turn.Keep()
	}
}

func (t *keyTurn) Drop() {
	if t.end(!t.turn.Gone) {
		t.turn.Done(nil)
	}
}

// end reports whether the turn ends now. again: the key's next turn has the changes of this one,
// too.
func (t *keyTurn) end(again bool) bool {
	if t.ended.Swap(true) {
		return false
	}
	if t.changes == nil {
		return true
	}
	p := t.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if again {
		p.failed[t.turn.Key] = t.changes
	} else {
		delete(p.failed, t.turn.Key)
	}
	return true
}

// Trigger gives some keys a turn, though nothing may have changed. It ignores keys that no object
// has. A key that is in a turn, or waits for a backoff, has its turn after that.
func (p *partitioned) Trigger(keys ...string) { p.all.Trigger(keys...) }

// TriggerAll is Trigger for all existing keys.
func (p *partitioned) TriggerAll() { p.all.TriggerAll() }

// Add adds queries, for fields of the struct that have none, while keys are handed out. Turns go
// on. All new queries are in the same turns, as soon as each has its first list; a key whose
// snapshot changes by that has a turn. Errors are those of [Snapshots.Add].
func (p *Partitions[S]) Add(ctx context.Context, queries ...Query) error {
	return p.change(ctx, "add", reflect.TypeFor[S](), queries, p.all.Add)
}

// Replace replaces the queries of these names while keys are handed out: by other namespaces,
// other selectors, other kinds, or other functions Key. All of them change together: no turn has
// objects of some new queries and some old ones. Until each new query has its first list, turns go
// on with the old ones. A key whose objects change by that has a turn, also if it comes or goes.
// See [Accumulator.Replace].
func (p *Partitions[S]) Replace(ctx context.Context, queries ...Query) error {
	return p.change(ctx, "replace", reflect.TypeFor[S](), queries, p.all.Replace)
}

// Remove ends the queries of these names while keys are handed out. Their fields are nil from then
// on, and all keys have a turn. It is an error if a name has no query, or if no query with a Key
// is left; then none is removed.
func (p *partitioned) Remove(ctx context.Context, names ...string) error {
	return plain.While("remove", p.all.Remove(ctx, names...))
}

func (p *partitioned) change(ctx context.Context, what string, t reflect.Type, queries []Query, do func(context.Context, ...query.Query) error) error {
	compiled, err := p.client.compileAtRunTime(ctx, t, queries)
	if err == nil {
		err = do(ctx, compiled...)
	}
	return plain.While(what, err)
}

// Keys are those that objects have, in order, as of the latest Next.
func (p *partitioned) Keys() []string { return p.all.Keys() }

// Ready is [Accumulator.Ready].
func (p *partitioned) Ready() error { return p.all.Ready() }

// Status is [Accumulator.Status].
func (p *partitioned) Status() Status { return statusOf(p.all.Status()) }

// Close is [Accumulator.Close]. It does not wait for turns; to end them later does no harm.
func (p *partitioned) Close() { p.all.Close() }

// because adds to the error of an end what was incomplete.
func (p *partitioned) because(err error) error { return endedWithout(p.Ready(), err) }
