package kates

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/accumulator/partition"
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/internal/reach"
)

// Partitions hands out snapshots of type S by key: a struct with the objects that belong to it.
// See [WatchEach].
type Partitions[S any] struct{ *partitioned }

// partitioned is partitions of a struct type.
type partitioned struct {
	all   *partition.Partitions
	begin func(context.Context) context.Context // of the client
	// deltas and invalid are the indexes of those fields, if any.
	deltas, invalid []int

	mu     lockorder.Mutex[lockorder.TurnChanges]
	blank  *changes            // of no key
	failed map[string]*changes // of turns whose changes the next one has, too
}

func newPartitioned(c *Client, all *partition.Partitions, f structFields) *partitioned {
	p := &partitioned{all: all, begin: c.begin, deltas: f.deltas, invalid: f.invalid, failed: make(map[string]*changes)}
	p.blank = newChanges(p.Status())
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

// keyTurn is the turn of a key, and a [keyed.Turn] but for Yield. It ends once, by whichever method
// is called first.
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
//	    kates.Query{Name: "Namespaces", Key: kates.ByObjectName},
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
// panics is left out of its former partitions until its next version. [WithInvalid] and Status
// report it even if it never was in one.
//
// Errors are those of Watch, and one if no query has a Key. On an error nothing is left running.
func WatchEach[S any](ctx context.Context, c *Client, queries ...Query) (*Partitions[S], error) {
	return watchEach[S](ctx, c, attempts.Default, queries)
}

func watchEach[S any](ctx context.Context, c *Client, backoff attempts.Backoff, queries []Query) (*Partitions[S], error) {
	t := reflect.TypeFor[S]()
	fields, err := c.fieldsOf(ctx, structFields{}, t, queries)
	if err == nil {
		err = checkStruct(t, fields.targets)
	}
	var compiled []query.Query
	if err == nil {
		compiled, err = c.compile(fields.targets)
	}
	if err != nil {
		return nil, reach.First(fmt.Errorf("watch each %s: %w", t, err))
	}
	all, err := partition.Start(ctx, c.core.streams, t, compiled, partition.Options{
		Options: c.watch.get().options(), Backoff: backoff,
	})
	if err != nil {
		return nil, reach.First(fmt.Errorf("watch each %s: %w", t, err))
	}
	return &Partitions[S]{newPartitioned(c, all, fields)}, nil
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

// Activate gives some keys a turn, though nothing may have changed. It ignores keys that no object
// has. A key that is in a turn, or waits for a backoff, has its turn after that.
func (p *partitioned) Activate(keys ...string) { p.all.Activate(keys...) }

// ActivateAll is Activate for all existing keys.
func (p *partitioned) ActivateAll() { p.all.ActivateAll() }

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
