package kates

import (
	"context"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/internal/loops/turns"
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
// A key goes first if an object of its own has changed, or if it is triggered. Keys that wait for
// their first call, or that are due because of a change that concerns all keys, go after it. One
// call of five is for these.
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
	r, err := begin(ctx, c, "run each", t, f == nil, options, func(s *runSettings) error { return s.divideKeys(c) })
	if err != nil {
		return err
	}
	defer r.end()
	partitions, end, err := keyed.Outlive(r.ctx, r.grace, func(life context.Context) (*Partitions[S], error) {
		return watchEach[S](life, c.With(r.watch...), r.queries, partition.Options{
			Backoff: r.policy.Backoff, Former: r.cluster.Known.Keys(), Sharing: sharingOf(r.division),
		})
	})
	if err != nil {
		return r.ended(err, r.config.Unstarted(err))
	}
	defer end()
	defer partitions.Close()
	bind(r.handles, partitions)
	all := turns.Each{Turns: partitions.turns, Known: r.cluster.Known, Function: func(ctx context.Context, key string, snap any) error {
		return f(ctx, key, snap.(*S))
	}}
	loop := &keyed.Loop[turns.EachTurn]{Config: r.config, Source: all, Work: all, Grace: r.grace}
	err = loop.Run(r.ctx)
	return r.ended(partitions.Ready(), err)
}

// Partitions hands out snapshots of type S by key: a struct with the objects that belong to it.
// See [WatchEach].
type Partitions[S any] struct{ *partitioned }

// partitioned is partitions of a struct type.
type partitioned struct {
	client *Client
	turns  *turns.Turns
}

func newPartitioned(c *Client, t reflect.Type, all *partition.Partitions, f compile.Struct) *partitioned {
	r := &turnReports{deltas: f.Reports[0].Index, invalid: f.Reports[1].Index, blank: newChanges(t), failed: make(map[string]*changes)}
	return &partitioned{c, &turns.Turns{Partitions: all, Begin: c.withHorizon, Reports: r}}
}

// turnReports fill the fields for deltas and for invalid objects.
type turnReports struct {
	deltas, invalid []int // the indexes of those fields, if any

	mu     lockorder.Mutex[lockorder.TurnChanges]
	blank  *changes            // of no key
	failed map[string]*changes // of turns whose changes the next one has, too
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

	turn *turns.Turn
}

// WatchEach starts watching what the exported fields of the struct S say, as [Watch] does, until
// ctx ends or Close. It is for a program that has one output per something: per namespace, per
// tenant, per gateway. [Query.Key] says to which keys an object belongs; each key has a snapshot
// of its own:
//
//	type Tenant struct {
//	    Namespaces []*corev1.Namespace
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
	compiler := c.keyed()
	fields, err := compiler.Fields(ctx, compile.Struct{Reports: reports}, t, wantedOf(queries))
	if err == nil {
		err = compile.CheckStruct(t, fields.Wanted)
	}
	var compiled []query.Query
	if err == nil {
		compiled, err = compiler.All(fields.Wanted)
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
	turn, err := p.turns.Partitions.Next(ctx)
	if err != nil {
		return nil, err
	}
	snap := turn.Snapshot.(*S)
	return &Turn[S]{
		Key: turn.Key, Snapshot: snap, Gone: turn.Gone, Attempt: turn.Attempt,
		turn: p.turns.New(turn, reflect.ValueOf(snap).Elem()),
	}, nil
}

// Fill implements [turns.Reports].
func (p *turnReports) Fill(turn *partition.Turn, into reflect.Value) any {
	if p.invalid != nil {
		into.FieldByIndex(p.invalid).Set(reflect.ValueOf(invalidsOf(turn.Invalid)))
	}
	if p.deltas == nil {
		return nil
	}
	changes := p.changesOf(turn.Key)
	changes.add(deltasOf(turn.Differences))
	into.FieldByIndex(p.deltas).Set(reflect.ValueOf(changes.deltas()))
	return changes
}

// Ended implements [turns.Reports].
func (p *turnReports) Ended(key string, reported any, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if again {
		p.failed[key] = reported.(*changes)
	} else {
		delete(p.failed, key)
	}
}

// changesOf are those of a key since its last turn without an error. They belong to the key's
// turn.
func (p *turnReports) changesOf(key string) *changes {
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

// Trigger gives some keys a turn, though nothing may have changed. It ignores keys that no object
// has. A key that is in a turn, or waits for a backoff, has its turn after that.
func (p *partitioned) Trigger(keys ...string) { p.turns.Trigger(keys...) }

// TriggerAll is Trigger for all existing keys.
func (p *partitioned) TriggerAll() { p.turns.TriggerAll() }

// Add adds queries, for fields of the struct that have none, while keys are handed out. Turns go
// on. All new queries are in the same turns, as soon as each has its first list; a key whose
// snapshot changes by that has a turn. Errors are those of [Snapshots.Add].
func (p *Partitions[S]) Add(ctx context.Context, queries ...Query) error {
	return addQueries(ctx, p.altered(), queries)
}

// Replace replaces the queries of these names while keys are handed out: by other namespaces,
// other selectors, other kinds, or other functions Key. All of them change together: no turn has
// objects of some new queries and some old ones. Until each new query has its first list, turns go
// on with the old ones. A key whose objects change by that has a turn, also if it comes or goes.
// See [Accumulator.Replace].
func (p *Partitions[S]) Replace(ctx context.Context, queries ...Query) error {
	return replaceQueries(ctx, p.altered(), queries)
}

// Change replaces the query of a name by what a function makes of it, while keys are handed out,
// and so keeps what the function does not change: its Key, too. See [Accumulator.Change] and
// [Partitions.Replace].
func (p *Partitions[S]) Change(ctx context.Context, name string, change func(*Query)) error {
	return changeQuery(ctx, p.altered(), name, change)
}

// altered is the watch as its queries change.
func (p *Partitions[S]) altered() alterable {
	return altered{p.client.keyed(), reflect.TypeFor[S](), p.turns}
}

// Remove ends the queries of these names while keys are handed out. Their fields are nil from then
// on, and all keys have a turn. It is an error if a name has no query, or if no query with a Key
// is left; then none is removed.
func (p *partitioned) Remove(ctx context.Context, names ...string) error {
	return plain.While("remove", p.turns.Remove(ctx, names...))
}

// Keys are those that objects have, in order, as of the latest Next.
func (p *partitioned) Keys() []string { return p.turns.Keys() }

// Ready is [Accumulator.Ready].
func (p *partitioned) Ready() error { return p.turns.Ready() }

// Status is [Accumulator.Status].
func (p *partitioned) Status() Status { return statusOf(p.turns.Status()) }

// Close is [Accumulator.Close]. It does not wait for turns; to end them later does no harm.
func (p *partitioned) Close() { p.turns.Close() }
