package collect

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// Observer is told of a snapshot that differs from the last one, and of each turn. It is called
// without locks, in the reader's turn.
type Observer func(Delivered)

// Delivered is a snapshot that was delivered, or a turn.
type Delivered struct {
	ID int64 // of the watch
	// Key of the turn.
	Key string
	// First: it is the first of the watch, which was opened that long ago.
	First  bool
	Opened time.Duration
	// Took is how long it took to make it.
	Took time.Duration
	// Differences are those of the snapshot or turn. They are valid during the call alone.
	Differences []tables.Difference
}

// tally counts what a watch has done.
type tally struct {
	id        int64 // tells the watches of a process apart
	opened    time.Time
	updates   atomic.Uint64
	snapshots atomic.Uint64
	changes   atomic.Uint64
	updated   atomic.Int64 // when the last snapshot was delivered, in nanoseconds since 1970
}

var watchIDs atomic.Int64

// Updated notes that the reader has looked at what there is, since a time, and tells the observer
// if it was something new. It belongs to the reader's turn.
func (c *Collector[S]) Updated(key string, since time.Time, changed bool, differences []tables.Difference) {
	t := &c.tally
	t.updates.Add(1)
	if !changed {
		return
	}
	now := time.Now()
	first := t.snapshots.Add(1) == 1
	t.changes.Add(uint64(len(differences)))
	t.updated.Store(now.UnixNano())
	if c.options.Observer == nil {
		return
	}
	lockorder.CallOut("Options.Observer")
	c.options.Observer(Delivered{
		ID: t.id, Key: key, First: first, Opened: now.Sub(t.opened), Took: now.Sub(since), Differences: differences,
	})
}

// Inspection is what a watch has, and what it has done, in numbers.
type Inspection struct {
	ID                          int64
	Name                        string
	Silent                      bool // nobody takes snapshots of it
	Opened, Completed           time.Time
	Incomplete                  error
	Queries                     []QueryInspection
	Signals, Updates, Snapshots uint64
	Changes                     uint64
	Signalled, Updated          time.Time
	Keys                        *KeysInspection // nil: it has no keys
	Turn                        *watchdog.Pulse // the reader's turns
}

// QueryInspection is what a query has, and what has happened, in numbers.
type QueryInspection struct {
	query.Status
	Listeners []stream.ListenerInspection
}

// KeysInspection says how many keys are in which state.
type KeysInspection struct {
	All, Waiting, Ready, Running, Resting int
	ReadySince                            time.Time // of the key that has waited longest; zero: none
	Some                                  []KeyInspection
}

// KeyInspection is one key.
type KeyInspection struct {
	Key      string
	State    string
	Since    time.Time // of a key that is ready, or runs
	Failures int
	Until    time.Time // of a key that rests
}

// Inspect returns what the watch has and has done.
func (c *Collector[S]) Inspect() Inspection {
	t := &c.tally
	in := Inspection{
		Turn: &c.reading,
		ID:   t.id, Name: c.options.Name, Silent: c.pacer == nil, Opened: t.opened, Completed: timeOf(&c.course.completedAt),
		Updates: t.updates.Load(), Snapshots: t.snapshots.Load(), Changes: t.changes.Load(), Updated: timeOf(&t.updated),
	}
	if c.pacer != nil {
		in.Signals, in.Signalled = c.pacer.given()
	}
	in.Incomplete = c.Ready()
	entries := c.wanted()
	for _, st := range c.Status() {
		q := QueryInspection{Status: st}
		for _, l := range entries[st.Name].listeners() {
			q.Listeners = append(q.Listeners, l.Inspect())
		}
		in.Queries = append(in.Queries, q)
	}
	return in
}

// timeOf is a time in nanoseconds since 1970, the zero time for 0.
func timeOf(at *atomic.Int64) time.Time {
	if n := at.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// Examined is what a watch has of one object.
type Examined struct {
	// Shown is what the last snapshot has, nil: nothing. Err says why it is left out.
	Shown object.Object
	Err   error
	// Streams are what the streams of the query have.
	Streams []stream.Examined
}

// Examine returns what the streams of a query have of an object. It returns false if there is no
// such query.
func (c *Collector[S]) Examine(name string, key object.Key) (Examined, bool) {
	entry := c.wanted()[name]
	if entry.shown == nil {
		return Examined{}, false
	}
	var e Examined
	for _, l := range entry.listeners() {
		if l.Covers(key) {
			e.Streams = append(e.Streams, l.Examine(key))
		}
	}
	return e, true
}

// Names returns the names of the objects that the streams of a query show, in order. It returns
// nil if there is no such query.
func (c *Collector[S]) Names(name string) []object.Key {
	f := c.named(name)
	if f == nil {
		return nil
	}
	keys := make([]object.Key, 0)
	f.Query.Each("", func(key object.Key, _ object.Object) { keys = append(keys, key) })
	slices.SortFunc(keys, object.Compare)
	return slices.Compact(keys)
}

// listeners returns those of both queries.
func (e entry[S]) listeners() (all []*stream.Listener) {
	for _, f := range e.fields() {
		all = append(all, f.Query.Listeners()...)
	}
	return all
}
