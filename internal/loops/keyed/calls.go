package keyed

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/lockorder"
)

// Call is a call of a loop's function.
type Call struct {
	Loop    string // the name of the loop
	Key     string
	ID      string // unique
	Attempt int    // 1, or more after failures in a row
	Since   time.Time
	Queued  time.Duration // ready, and waiting for a worker
}

// Ended is how a call has ended. Package kates has public names for these.
type Ended string

// The ends of calls.
const (
	Succeeded Ended = "success"
	Failed    Ended = "error"
	Requeued  Ended = "requeue_after"
	Terminal  Ended = "terminal"
	Cut       Ended = "cut"
)

// Result is the outcome of a call.
type Result struct {
	Ended    Ended
	Err      error // of the function
	Panicked bool  // the error is a panic
	Duration time.Duration
}

// Observe is told of each call before it begins. It returns the context of the call, and a
// function that is told of the result. It is called without locks.
type Observe func(ctx context.Context, c Call) (context.Context, func(Result))

// Failure says how the last call of a key has failed.
type Failure struct {
	Key, ID, Error string
	Panicked       bool
	Attempt        int
	At             time.Time
	Since          time.Time // of the first failure in this row
}

// LoopReport is what a loop does, and has done.
type LoopReport struct {
	Name       string
	Workers    int
	Running    []Call // by their beginning
	Ended      map[Ended]uint64
	Failing    []Failure // by key, MostFailing at most
	FailingAll int
}

// MostFailing is how many failures a report names.
const MostFailing = 100

// Loops are those of one client that run. The zero value is ready. It is safe for concurrent use.
type Loops struct {
	mu   lockorder.Mutex[lockorder.Loops]
	open []*Calls // in the order of their beginning
}

// Reports are those of the loops that run, in the order of their beginning.
func (l *Loops) Reports() (all []LoopReport) {
	l.mu.Lock()
	open := slices.Clone(l.open)
	l.mu.Unlock()
	for _, c := range open {
		all = append(all, c.report())
	}
	return all
}

// New returns the calls of a loop, which are told to observe.
func (l *Loops) New(name string, workers int, observe Observe) *Calls {
	return &Calls{all: l, name: name, workers: workers, observe: observe}
}

// Calls are those of a loop: it gives each its identity, tells an observer, and keeps the numbers.
// It is safe for concurrent use. A nil Calls does nothing of this.
type Calls struct {
	all     *Loops
	name    string
	workers int
	observe Observe
	// Limit is how long a call may take before it is overdue; 0: as long as it likes. It is set
	// before the first Begin.
	Limit time.Duration

	mu      lockorder.Mutex[lockorder.LoopCalls]
	running map[string]Call // by ID
	ended   map[Ended]uint64
	failing map[string]Failure // by key
}

// Overdue says which calls of a loop have not ended in time.
type Overdue struct {
	Loop    string
	Calls   int           // 0: none
	Longest time.Duration // of the one that has begun first
	ID      string        // of that
}

// Overdue checks the loops whose calls have to end in time.
func (l *Loops) Overdue(now time.Time) (all []Overdue) {
	l.mu.Lock()
	open := slices.Clone(l.open)
	l.mu.Unlock()
	for _, c := range open {
		if c.Limit > 0 {
			all = append(all, c.overdue(now))
		}
	}
	return all
}

func (c *Calls) overdue(now time.Time) Overdue {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := Overdue{Loop: c.name}
	for id, call := range c.running {
		d := now.Sub(call.Since)
		if d <= c.Limit {
			continue
		}
		if o.Calls++; d > o.Longest {
			o.Longest, o.ID = d, id
		}
	}
	return o
}

// Begin begins a run of the loop: its report is among those of the client until end is called.
func (c *Calls) Begin() (end func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	c.running, c.ended, c.failing = nil, nil, nil
	c.mu.Unlock()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.open = append(c.all.open, c)
	return func() {
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		c.all.open = slices.DeleteFunc(c.all.open, func(other *Calls) bool { return other == c })
	}
}

// call begins a call. ready is when its key was; zero: it has not waited. The context is that of
// the call; log is that of its key, with its ID. end ends the call.
func (c *Calls) call(ctx context.Context, log logr.Logger, key string, attempt int, ready time.Time) (inner context.Context, call Call, end func(Result)) {
	call = Call{Loop: c.name, Key: key, ID: string(uuid.NewUUID()), Attempt: attempt, Since: time.Now()}
	if !ready.IsZero() {
		call.Queued = max(0, call.Since.Sub(ready))
	}
	inner = withCall(ctx, call.ID, log.WithValues("reconcileID", call.ID))
	told := func(Result) {}
	if c.observe != nil {
		lockorder.CallOut("an observer of calls")
		inner, told = c.observe(inner, call)
		call.Since = time.Now() // the observer has taken its time
	}
	c.begun(call)
	return inner, call, func(r Result) {
		r.Duration = time.Since(call.Since)
		c.end(call, r)
		told(r)
	}
}

func (c *Calls) begun(call Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = make(map[string]Call)
	}
	c.running[call.ID] = call
}

func (c *Calls) end(call Call, r Result) {
	failure := Failure{Key: call.Key, ID: call.ID, Attempt: call.Attempt, At: time.Now()}
	if r.Ended == Failed || r.Ended == Terminal {
		failure.Error, failure.Panicked = textOf(r.Err), r.Panicked
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, call.ID)
	if c.ended == nil {
		c.ended, c.failing = make(map[Ended]uint64), make(map[string]Failure)
	}
	c.ended[r.Ended]++
	switch r.Ended {
	case Failed, Terminal:
		failure.Since = failure.At
		if before, is := c.failing[call.Key]; is {
			failure.Since = before.Since
		}
		c.failing[call.Key] = failure
	case Succeeded, Requeued:
		delete(c.failing, call.Key)
	}
}

// textOf is the text of a user's error.
func textOf(err error) (text string) {
	broken := guard.Named("the error", func() error {
		text = err.Error()
		return nil
	})
	if broken != nil {
		return broken.Error()
	}
	return text
}

// forget forgets the failure of a key for which nothing is to be done any more.
func (c *Calls) forget(key string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failing, key)
}

func (c *Calls) report() LoopReport {
	c.mu.Lock()
	r := LoopReport{
		Name: c.name, Workers: c.workers, Ended: maps.Clone(c.ended), FailingAll: len(c.failing),
		Running: slices.Collect(maps.Values(c.running)), Failing: slices.Collect(maps.Values(c.failing)),
	}
	c.mu.Unlock()
	slices.SortFunc(r.Running, func(a, b Call) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Key, b.Key))
	})
	slices.SortFunc(r.Failing, func(a, b Failure) int { return strings.Compare(a.Key, b.Key) })
	r.Failing = slices.Clone(r.Failing[:min(len(r.Failing), MostFailing)])
	return r
}
