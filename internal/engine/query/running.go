package query

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
)

// Running is a [Query] that runs: one set of objects, made of one or several streams. Nobody above
// sees the streams.
//
// Take and Untake belong to one goroutine at a time, the reader's turn. So do others that say so.
// The rest is safe for concurrent use, and changes nothing that a reader sees.
type Running interface {
	// Query returns the query as it is now.
	Query() Query

	// Take returns what has changed since the last batch. present: the reader has a snapshot of the
	// query. Otherwise there is no batch while a stream has given up own writes.
	Take(present bool) Batch
	// Untake takes a first batch back: the next batch has all objects.
	Untake()
	// AtRest reports whether the next batch changes nothing, unless [Host.Noted] is called before.
	// It belongs to the reader's turn, after Take.
	AtRest() bool
	// Phase says what a reader can take.
	Phase() Phase
	// News reports whether there is a change that is worth a signal.
	News() bool
	// Get returns the state of an object that its stream shows, nil if it shows none.
	Get(key object.Key) object.Object
	// Each calls f with the objects in a namespace ("" for all). It calls f without locks.
	Each(namespace string, f func(object.Key, object.Object))
	// Status is for humans.
	Status() Status

	// Connect joins the streams, once the kind is known. It is called once.
	Connect(ctx context.Context) error

	// Succeed starts another query beside this one. Nobody sees it before Switch. It sends no
	// request.
	Succeed(ctx context.Context, q Found) (*Successor, error)
	// Await makes it the successor of this query; nil: there is none any more. From now on Status
	// is the successor's. end closes the former successor; it is called without locks.
	Await(s *Successor) (end func())
	// Wanted returns the successor's query, or, without one, this query.
	Wanted() Query
	// Fresh reports whether a query that was added is as new as what the reader has had under its
	// name. If not, the server is asked.
	Fresh() bool
	// Settled reports whether the successor can be shown, as far as that is known without the
	// reader's turn.
	Settled() bool
	// Try takes the successor's first batch, if it can be shown. Either Switch or Untry follows.
	// Both belong to the reader's turn.
	Try() bool
	Untry()
	// Switch replaces the query by its successor. The next batch has all objects. It belongs to
	// the reader's turn, unless nothing of the query was shown yet. end closes the old query; it
	// is called without locks.
	Switch() (end func())

	// Unresolved reports whether the kind is unknown, or no longer served as before.
	Unresolved() bool
	// Resolve finds out how the kind is served now, and joins its streams.
	Resolve(ctx context.Context)
	// Tend does what is due without a reader.
	Tend()
	// Rank is the length of the longest chain of names that leads to the query. Lower ranks are
	// taken first.
	Rank() int
	// Late returns the streams that objects wait for, or that have to be as new as what was shown.
	Late() []Late

	// Listeners returns the listeners of all streams.
	Listeners() []*stream.Listener
	// Waits says what waits in the query.
	Waits() Waits
	// Close leaves all streams.
	Close()
}

// Late is a stream of a query that is late. Values compare.
type Late interface {
	// Patience is how long the stream may take by itself.
	Patience() time.Duration
	// CatchUp asks the server on behalf of the stream, if something still waits for it. It returns
	// false if that failed.
	CatchUp(ctx context.Context) (ok bool)
}

// Naming is a [Running] whose objects name those of others.
type Naming interface {
	Running
	// Follow reads the names in objects as they come, so that the named objects are watched at
	// once. It keeps the changes for the next Take. It returns how long objects may still wait for
	// those that they name, 0 if none waits. It belongs to the reader's turn.
	Follow(present bool) (patience time.Duration)
}

// Phase says what a reader can take of a query.
type Phase int

const (
	// Incomplete: some first list is not in.
	Incomplete Phase = iota
	// Replaced: the kind is served in another way, and these streams are incomplete, but those
	// that the query had before can be read.
	Replaced
	// Complete: every first list is in, or is certainly empty.
	Complete
	// Empty: there is certainly nothing. The query is optional, and its kind does not exist, or
	// may not be read.
	Empty
)

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
	// Wake says that there may be news. Attend says that Tend may have something to do, or that a
	// stream is late, or a kind unknown. Follow says that names may have to be read. They are called
	// without locks, by any goroutine, and must not block.
	Wake, Attend, Follow func()
	// Noted says that the next batch may have something, worth a signal or not. A stream calls it
	// at that very moment, with its lock held. Whoever calls Wake or Follow need not call it:
	// Wake does, and Follow comes to Wake.
	Noted func()
	// Ready is whether the first snapshot is complete.
	Ready *atomic.Bool
	// Past is what the reader has had.
	Past *Past
}

// listen returns the options of a query's listeners.
func (h *Host) listen(q Query) stream.ListenOptions {
	from := stream.Any
	if q.Apart {
		from = stream.Own
	}
	return stream.ListenOptions{
		PerKey: h.PerKey, QuietOwn: h.QuietOwn, Wake: h.Wake, Trouble: h.Attend, Noted: h.Noted,
		Optional: q.Optional, Signal: q.Signal, From: from,
	}
}
