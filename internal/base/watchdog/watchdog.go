// Package watchdog notes what has begun and has to end soon: steps in which no server is waited
// for, and functions of the user. Health checks ask whether one of these hangs.
//
// A [Pulse] is for what is done one at a time, and often: it costs two additions, and no look at
// the clock. So it does not know when something has begun. A look at it notes what is under way,
// and how long that has been so since the first look: whoever asks every few seconds finds what
// hangs. [Open] is for what is done several at a time, and seldom: a lock and a look at the clock.
package watchdog

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Pulse notes the steps of one goroutine, or of those that take turns. The zero value is ready.
// Begin and End belong to whoever has the turn; all other methods are safe for concurrent use. A
// nil Pulse notes nothing.
type Pulse struct {
	beats atomic.Uint64 // odd: a step is under way
	doing atomic.Pointer[string]
	seen  atomic.Pointer[sighting]
}

// sighting is a step that was under way.
type sighting struct {
	beat  uint64
	since time.Time
}

// Begin begins a step.
func (p *Pulse) Begin() {
	if p != nil {
		p.beats.Add(1)
	}
}

// End ends the step.
func (p *Pulse) End() {
	if p != nil {
		p.beats.Add(1)
	}
}

// Do notes which function of the user runs in the step; nil: none any more.
func (p *Pulse) Do(what *string) {
	if p != nil {
		p.doing.Store(what)
	}
}

// Look returns how long the step that is under way has been so since the first look at it, and
// which function of the user it runs, "" for none. It is 0 if no step is under way.
func (p *Pulse) Look(now time.Time) (d time.Duration, doing string) {
	beat := p.beats.Load()
	if beat%2 == 0 {
		return 0, ""
	}
	seen := p.seen.Load()
	if seen == nil || seen.beat != beat {
		p.seen.CompareAndSwap(seen, &sighting{beat, now})
		return 0, ""
	}
	if what := p.doing.Load(); what != nil {
		doing = *what
	}
	return now.Sub(seen.since), doing
}

// Open are functions of the user that run, by any number of goroutines. The zero value is ready.
type Open struct {
	mu      lockorder.Mutex[lockorder.Watchdog]
	last    uint64
	running map[uint64]Running
}

// Running is a function that runs.
type Running struct {
	What  string
	Since time.Time
}

// Begin notes that a function begins. end notes that it has ended. A nil Open notes nothing.
func (o *Open) Begin(what string) (end func()) {
	if o == nil {
		return func() {}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running == nil {
		o.running = make(map[uint64]Running)
	}
	o.last++
	id := o.last
	o.running[id] = Running{what, time.Now()}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.running, id)
	}
}

// Running are the functions that run, the one that has begun first before the others.
func (o *Open) Running() []Running {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.SortedFunc(maps.Values(o.running), func(a, b Running) int { return a.Since.Compare(b.Since) })
}
