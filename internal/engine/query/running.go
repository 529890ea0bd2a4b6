package query

import (
	"context"
	"time"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
)

// Running is a [Query] that runs: one set of objects, made of one or several streams. Nobody above
// sees the streams.
//
// Take and Untake belong to one goroutine at a time, the reader's turn. The rest is safe for
// concurrent use, and changes nothing that a reader sees.
type Running interface {
	// Query returns the query.
	Query() Query
	// Base returns the query itself, or the one that it wraps.
	Base() Running
	// Connect joins the streams. It is called once, before all else. After an error, Close is due.
	Connect() error

	// Take returns what has changed since the last batch. present: the reader has a snapshot of the
	// query. Otherwise there is no batch while a stream has given up own writes.
	Take(present bool) Batch
	// Untake takes a first batch back: the next batch has all objects.
	Untake()

	// Phase says what a reader can take.
	Phase() Phase
	// State says what a reader may find.
	State() State
	// Status is for humans.
	Status() Status
	// Get returns the state of an object that its stream shows, nil if it shows none.
	Get(key object.Key) object.Object
	// Each calls f with the objects in a namespace ("" for all). It calls f without locks.
	Each(namespace string, f func(object.Key, object.Object))
	// Listeners returns the listeners of all streams.
	Listeners() []*stream.Listener

	// Attend does what is due without a reader, and returns what takes time.
	Attend() []Task
	// Close leaves all streams.
	Close()
}

// Task is something that takes time: to help a stream that is late, or to look for a kind. Values
// compare.
type Task interface {
	// Patience is after what time the task is done.
	Patience() time.Duration
	// Do asks the server, if it is still due. It returns false if that failed.
	Do(ctx context.Context) (ok bool)
}

// Unresolved is a query whose kind is not known, or no longer served as before.
type Unresolved struct {
	// Kind finds out how its kind is served now, and joins its streams.
	Kind interface{ Resolve(ctx context.Context) }
	Host *Host
}

// Patience is the time between two looks for a kind.
func (t Unresolved) Patience() time.Duration { return t.Host.Streams.Config().KindPoll }

// Do looks for the kind.
func (t Unresolved) Do(ctx context.Context) (ok bool) {
	t.Kind.Resolve(ctx)
	t.Host.Follow()
	return true
}

// Phase says what a reader can take of a query.
type Phase int

const (
	// Incomplete: some first list is not in.
	Incomplete Phase = iota
	// Partial: a first list is missing, and a reader can read some streams. These have their list,
	// or they are the streams from before the kind was served in another way.
	Partial
	// Complete: every first list is in, or is certainly empty.
	Complete
	// Empty: there is certainly nothing. The query is optional, and its kind does not exist, or
	// may not be read.
	Empty
)

// State says what a reader may find in a query.
type State struct {
	// News: there is a change that is worth a signal.
	News bool
	// AtRest: the next batch changes nothing, unless [Host.Noted] is called before. It is valid in
	// the reader's turn, after Take.
	AtRest bool
	Waits
}

// Waits is what waits in a query. All is zero when its servers are quiet and it has been read.
type Waits struct {
	// Held is the number of objects whose newest state may not be shown yet.
	Held int
	// Late is the number of streams that they wait for.
	Late int
	// Named is the number of objects that are named, for a query with Refs.
	Named int
}

// Host is what runs queries.
type Host struct {
	Streams *streamset.Set
	// PerKey: batches say for each key whether it is worth a signal.
	PerKey bool
	// QuietOwn: own writes do not signal.
	QuietOwn bool
	// Wake says that there may be news. Attend says that Running.Attend may have something to do.
	// Follow says that names may have to be read. They are called without locks, by any goroutine,
	// and must not block.
	Wake, Attend, Follow func()
	// Noted says that the next batch may have something, worth a signal or not. A stream calls it
	// at that very moment, with its lock held. Whoever calls Wake or Follow need not call Noted:
	// Wake calls it, and so does Follow in the end.
	Noted func()
	// Ready is whether the first snapshot is complete.
	Ready func() bool
	// Past is what the reader has had.
	Past *Past
}

// Listen returns the options of a query's listeners.
func (h *Host) Listen(q Query) stream.ListenOptions {
	from := stream.Any
	if q.Apart {
		from = stream.Own
	}
	return stream.ListenOptions{
		PerKey: h.PerKey, QuietOwn: h.QuietOwn, Wake: h.Wake, Trouble: h.Attend, Noted: h.Noted,
		Optional: q.Optional, Signal: q.Signal, From: from,
	}
}
