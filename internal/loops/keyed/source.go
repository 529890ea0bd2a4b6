package keyed

import (
	"context"
	"time"

	"github.com/kates-go/kates/internal/base/shardrange"
)

// Keys are the keys that replicas divide.
type Keys interface {
	Keys() []string // in order
	// Trigger gives some keys a turn, though nothing may have changed.
	Trigger(keys ...string)
	// Sync returns when the snapshots are as new as the server was at the call.
	Sync(ctx context.Context) error
}

// Divided are keys whose watches can bring a part of them alone.
type Divided interface {
	Keys
	// Share has the snapshots bring the keys of some hashes alone, as far as the server's objects can
	// be divided by them. It returns when they have all of these keys, and no others.
	Share(ctx context.Context, need shardrange.Ranges) error
	// Hash is the place of a key among the hashes. Loads are how many objects there are, by the
	// hashes of their keys, in order.
	Hash(key string) uint64
	Loads() []shardrange.Load
	// Streams says in words what the watches bring.
	Streams() string
}

// Watch is a watch whose snapshots a follower keeps up to date.
type Watch interface {
	Ready() error // nil once there is a complete snapshot
	Changed() <-chan struct{}
	Refresh(ctx context.Context) error // takes in what is new
	Sync(ctx context.Context) error
	Done() <-chan struct{} // closed at the end of the watch
	Err() error            // why it has ended
}

// Source hands out the turns of keys.
type Source[T Turn] interface {
	Keys
	Watch
	// Next waits for a turn. No key is in two turns at a time.
	Next(ctx context.Context) (T, error)
	TriggerAll()
}

// Whose says whether a key is this replica's.
type Whose int

const (
	Ours   Whose = iota
	Theirs       // another replica's, or nobody's: the key has another turn when it is ours
	Stale        // ours, but the turn's snapshot may be too old: the key needs another turn
)

// Turn is the time of one key. It is ended once, by one of the last five methods.
type Turn interface {
	// Name is the key.
	Name() string
	// Context returns ctx for what is done in the turn. It is called when the turn begins.
	Context(ctx context.Context) context.Context
	// Ready is when the key became ready for a worker; zero: it does not wait for one.
	Ready() time.Time

	// Done ends the turn. With an error the key has another one after a backoff of the source.
	Done(err error)
	// Again ends the turn. The key has another one after that time, and none earlier.
	Again(after time.Duration)
	// Keep ends the turn. The source does not forget the key, though no object may have it.
	Keep()
	// Drop ends a turn for which nothing was called. While the key exists, its next turn has the
	// deltas of this one, too.
	Drop()
	// Yield ends a turn that was cut short. The key has another one at once, with the same deltas.
	Yield()
}

// Shards say which keys are this replica's.
type Shards interface {
	// Gains returns how often this replica may have got keys. A worker asks before it takes a turn,
	// and gives the number to Enter. If it has grown by then, the turn's snapshot may lack what
	// another replica has written.
	Gains() uint64
	// Enter begins the work for a key, if the key has been this replica's since a moment. With
	// [Ours], inner is the context of the work, made of ctx, which ends when the key is lost, and
	// leave is called when the work has ended. Enter is safe for concurrent use, and is called
	// without locks.
	Enter(ctx context.Context, key string, since uint64) (inner context.Context, leave func(), is Whose)
	// Run keeps this replica in the group until ctx ends. The caller ends ctx after the last work.
	// If the membership cannot go on, Run calls failed, and does not return before ctx ends: the
	// keys of running work stay this replica's. If Run returns an error before that, this replica
	// has never had a key.
	Run(ctx context.Context, keys Keys, failed func(error)) error
}
