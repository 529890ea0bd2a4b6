package collect

import (
	"sync/atomic"
	"time"
)

// stage is how far a collector has come.
//
//	opening ──▶ complete ──▶ delivered
//
// No stage comes again. A collector that has ended keeps its stage, and [life] has the end.
// [course.reach] moves on, and nothing else does. Signals are apart from the stage: a reader may
// take a snapshot before the first signal, and that signal is given all the same.
type stage int32

const (
	opening   stage = iota // a query lacks its first list
	complete               // every query has its first list (G1)
	delivered              // the reader has had a snapshot
)

// course is the way of a collector through its stages. It is safe for concurrent use.
type course struct {
	at          atomic.Int32
	completed   chan struct{} // closed when the stage is no longer opening
	completedAt atomic.Int64  // in nanoseconds since 1970
}

func newCourse() *course { return &course{completed: make(chan struct{})} }

// has reports whether a stage is reached.
func (c *course) has(s stage) bool { return stage(c.at.Load()) >= s }

// isComplete reports whether every query has its first list, or had.
func (c *course) isComplete() bool { return c.has(complete) }

// reach moves on to a stage, unless the collector has come as far before.
func (c *course) reach(s stage) {
	for before := c.at.Load(); stage(before) < s; before = c.at.Load() {
		if !c.at.CompareAndSwap(before, int32(s)) {
			continue
		}
		if stage(before) == opening {
			c.completedAt.Store(time.Now().UnixNano())
			close(c.completed)
		}
	}
}
