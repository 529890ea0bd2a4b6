package stream

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// Config is what all streams of a client have in common.
type Config struct {
	// Source makes what lists and watches.
	Source source.Sources
	// StreamLists asks for the initial list as a stream of events (KEP-3157) instead of pages.
	StreamLists bool
	// PageSize of lists. 0: the first page has 500 objects, the others about 4 MiB.
	PageSize int64
	// PendingMax caps the own writes that a stream holds; past it the stream lists again. Default
	// 10,000.
	PendingMax int
	// ObjectsMax is how many objects all streams together may hold, those of lists under way
	// included. A list that would be more is given up, and a watch ends at the event that would
	// be. Then the stream lists again, with growing pauses; what it has shown stays. 0: there is
	// no bound for all together, and each stream has that of the source (source.ObjectsMost).
	ObjectsMax int
	// Hold bounds how long a write that versions cannot confirm is shown. Default 10 s.
	Hold time.Duration
	// IdleTimeout is how long a watch may bring nothing, not even a bookmark. After that the
	// server is asked for its newest version, and the watch is opened again. Servers send a
	// bookmark about every minute. Default 130 s.
	IdleTimeout time.Duration
	// Gone is asked when a list or watch was answered with err ([object.Misplaced], or 403 in a
	// namespace): whether it is certain that there is nothing left to watch, because complete,
	// fresh discovery serves the resource in no version, or because the namespace does not exist.
	// The discovery that it reads serves the next look-up of the kind, too. Nil: it is never
	// certain.
	Gone func(ctx context.Context, r object.Resource, namespace string, err error) bool
	// Suspect is called, from any stream's goroutine, when a watch has been silent for
	// IdleTimeout, or a request was not answered in time, before the next request: other
	// connections may be dead too, and each would cost a time-out. It closes them. It may be nil.
	Suspect func()
	// Share serves a query that selects a part of what a running stream has from that stream, see
	// package streamset.
	Share bool
	// OriginalsMax is how many bytes all streams together hold of objects that are left out, as the
	// server has them. Default 64 MiB.
	OriginalsMax int64
	// KindPoll is how often a kind is looked for that is not served, or may not be read. Default
	// 2 s.
	KindPoll time.Duration
	// Grace is how long a stream outlives its last user. Default 0.
	Grace time.Duration
	// Warm keeps what streams hold from one process to the next; nil: nothing is kept.
	Warm *warm.Warmth
	// Logger gets each transition of a stream once: as an error, if a first snapshot waits for
	// it, or if the server refuses or does not serve what is not optional; else as information.
	// The zero Logger discards.
	Logger logr.Logger
	// Points is called at each [Point] that is reached. Only tests set it.
	Points func(Moment)
}

// firstPage is how many objects the first page of a list has.
func (c Config) firstPage() int64 { return cmp.Or(c.PageSize, source.PageSize) }

// WithDefaults returns the configuration with what is not set filled in.
func (c Config) WithDefaults() Config {
	if c.PendingMax <= 0 {
		c.PendingMax = 10_000
	}
	c.PageSize = max(c.PageSize, 0)
	if c.Hold <= 0 {
		c.Hold = 10 * time.Second
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = 130 * time.Second
	}
	if c.OriginalsMax <= 0 {
		c.OriginalsMax = 64 << 20
	}
	if c.KindPoll <= 0 {
		c.KindPoll = 2 * time.Second
	}
	if c.Suspect == nil {
		c.Suspect = func() {}
	}
	if c.Logger.GetSink() == nil {
		c.Logger = logr.Discard()
	}
	return c
}

// ErrClosed is the cause of an end by Close.
var ErrClosed = errors.New("closed")

// Shared is what the streams of one client share.
type Shared struct {
	Config
	Owner
	Room *store.Room
	// Originals bounds what is held of objects that are left out.
	Originals *intake.Budget
	// deletions is how many deletions had no version, see progress.noteUnversioned.
	deletions atomic.Int64
}

// Owner is who has the streams of one client. Its methods are called without locks.
type Owner interface {
	// FloorRV is the version of the newest own write to a stored resource: no list may be older.
	FloorRV(storage string) string
	// LowerFloor forgets own writes to a stored resource, whose history has begun anew: the cluster
	// was restored from a backup.
	LowerFloor(storage string)
	// OtherShares returns the streams that hold other shares of a stream's objects, in the same
	// form.
	OtherShares(of *Stream) []*Stream
	// Release says that a listener has left the stream.
	Release(s *Stream)
	// Closed reports whether all streams have to end.
	Closed() bool
}
