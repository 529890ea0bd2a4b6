package partition

import (
	"container/heap"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// agenda says which key comes next. It knows of each key its state ([keyState]), how often in a
// row it has failed, and the time before which it does not run.
//
//	want, stir ─▶ waiting ──release──▶ ready ──next──▶ running ──done──▶
//	            signal, quiet            ▲                │
//	                                     │ time           └──rest──▶ resting
//	                                     └──────────────────────────────┘
//
// It replaces client-go's work queue, which does not tell which keys are queued, run and rest.
// That queue also keeps keys that are no longer wanted, knows no wait for quiet and no classes,
// and has a goroutine that outlives ShutDown. Here each fact is in one place, a key can leave at
// any time, and two timers without a goroutine keep the time.
//
// A release is O(released), not O(waiting). A wait for quiet or a rest costs O(log keys).
//
// The scheduler's lock guards everything but the channels and the backlog. It guards the
// entries too: each is a field of its partition. So the agenda allocates nothing for a turn.
type agenda struct {
	// A worker without a key waits for both: signal holds a value when a key may have become
	// ready, rested when a rest may be over.
	signal chan struct{}
	rested *time.Timer
	// ripe holds a value when a release may find a key that has become quiet.
	ripe     *time.Timer
	debounce *debounce // how long a stirred key waits; nil: none waits
	closed   bool

	due     keySet       // waiting, for a release alone
	stirred keyHeap      // waiting, for quiet
	queue   queue        // ready, in order
	rests   keyHeap      // resting
	active  keyList      // with a worker
	backlog atomic.Int64 // how many keys wait
}

// entry is one key of an agenda. The zero value, with its key, is idle.
type entry struct {
	key           string
	state         keyState
	failures      int       // turns in a row that ended in a rest
	notBefore     time.Time // of a key that waits for quiet, or rests; else zero
	first, latest time.Time // the changes of a key that waits for quiet
	since         time.Time // when a key that is ready became so, or one that runs got its turn
	place         int       // in a set or heap, from 1; 0: in none
	own, was      bool      // due for itself, see queue; was: so was the present turn
	before, after *entry    // in a list
}

// newAgenda returns an agenda of no keys. Without a debounce, stir is not called.
func newAgenda(d *debounce) *agenda {
	a := &agenda{signal: make(chan struct{}, 1), debounce: d}
	a.rested, a.ripe = time.NewTimer(forever), time.NewTimer(forever)
	a.rested.Stop()
	a.ripe.Stop()
	return a
}

// forever is longer than any program runs.
const forever = 1<<63 - 1

// putAhead puts a key into the first class: its own objects have changed, or somebody asked for it.
// A key that is ready moves to the end of the first queue.
func (a *agenda) putAhead(e *entry) {
	switch {
	case e.own:
	case e.state == keyReady:
		a.queue.remove(e)
		e.own = true
		a.queue.push(e)
	default:
		e.own = true
	}
}

// want makes a key due at the next release.
func (a *agenda) want(e *entry) {
	if a.wait(e) {
		a.due.add(e)
	}
}

// stir makes a changed key due: at the first release after it is quiet.
func (a *agenda) stir(e *entry) {
	switch now := time.Now(); {
	case a.wait(e):
		a.calm(e, now)
	case !e.state.waits():
	case e.notBefore.IsZero():
		a.due.remove(e)
		a.calm(e, now)
	default:
		e.latest = now
	}
}

// wait begins a key's wait for a release, unless it is already due, or rests.
func (a *agenda) wait(e *entry) bool {
	switch e.state {
	case keyIdle:
		e.state = keyWaiting
	case keyRunning:
		e.state = keyRunningWaiting
	default:
		return false
	}
	a.backlog.Add(1)
	return true
}

// waiting reports whether keys wait for a signal. It needs no lock.
func (a *agenda) waiting() bool { return a.backlog.Load() > 0 }

// calm begins a key's wait for quiet.
func (a *agenda) calm(e *entry, now time.Time) {
	e.first, e.latest = now, now
	e.notBefore = a.quietAt(e)
	heap.Push(&a.stirred, e)
	a.set(a.ripe, a.stirred)
}

// quietAt returns the time at which a key has waited long enough, if it is not stirred again.
func (a *agenda) quietAt(e *entry) time.Time {
	at := e.latest.Add(a.debounce.quiet)
	if limit := e.first.Add(a.debounce.most); limit.Before(at) {
		return limit
	}
	return at
}

// release makes the waiting keys ready, in their order: since the time of their signal. Of the
// keys that wait for quiet, it takes those that have waited long enough.
func (a *agenda) release(signal time.Time) {
	now, all := time.Now(), a.due
	for _, e := range all {
		e.since = signal
	}
	for len(a.stirred) > 0 && !a.stirred[0].notBefore.After(now) {
		e := a.stirred[0]
		// the key changed after it entered the heap: its time is computed again
		if e.notBefore = a.quietAt(e); e.notBefore.After(now) {
			heap.Fix(&a.stirred, 0)
			continue
		}
		heap.Pop(&a.stirred)
		e.since = e.notBefore
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y *entry) int { return strings.Compare(x.key, y.key) })
	for _, e := range all {
		e.place, e.notBefore = 0, time.Time{}
		a.backlog.Add(-1)
		a.ready(e, e.since)
	}
	clear(all)
	a.due = all[:0]
	a.set(a.ripe, a.stirred)
}

// hurry makes a key ready now, whatever it waits for. It does not shorten a rest.
func (a *agenda) hurry(e *entry) {
	if e.state.waits() {
		a.unwait(e)
	}
	a.ready(e, time.Now())
}

// unwait ends a key's wait for a release. The caller sets the next state.
func (a *agenda) unwait(e *entry) {
	if e.notBefore.IsZero() {
		a.due.remove(e)
	} else {
		heap.Remove(&a.stirred, e.place-1)
		e.notBefore = time.Time{}
		a.set(a.ripe, a.stirred)
	}
	a.backlog.Add(-1)
}

// ready puts a key that no longer waits into the queue. If a worker has the key, done does it
// later.
func (a *agenda) ready(e *entry, since time.Time) {
	switch e.state {
	case keyRunning, keyRunningWaiting:
		e.state = keyRunningReady
	case keyIdle, keyWaiting:
		a.enqueue(e, since)
	}
}

func (a *agenda) enqueue(e *entry, since time.Time) {
	e.state, e.since = keyReady, since
	a.queue.push(e)
	a.notify()
}

// notify wakes a worker that waits for a key.
func (a *agenda) notify() {
	select {
	case a.signal <- struct{}{}:
	default: // one is woken already
	}
}

// pending reports whether next would return a key.
func (a *agenda) pending() bool {
	a.wake()
	return a.queue.next() != nil
}

// next hands out the key that has been ready for longest, in the class whose turn it is; nil if
// there is none.
func (a *agenda) next() *entry {
	a.wake()
	e := a.queue.take()
	if e != nil {
		a.active.push(e)
		e.state = keyRunning
		e.own, e.was = false, e.own
	}
	return e
}

// wake makes the keys ready whose rest is over.
func (a *agenda) wake() {
	if len(a.rests) == 0 {
		return
	}
	for now := time.Now(); len(a.rests) > 0 && !a.rests[0].notBefore.After(now); {
		e := heap.Pop(&a.rests).(*entry)
		since := e.notBefore
		e.notBefore = time.Time{}
		a.enqueue(e, since)
	}
	a.set(a.rested, a.rests)
}

// done ends the turn of a key that did not fail.
func (a *agenda) done(e *entry) {
	a.active.remove(e)
	e.failures = 0
	switch e.state {
	case keyRunning:
		e.state, e.since = keyIdle, time.Time{}
	case keyRunningWaiting:
		e.state, e.since = keyWaiting, time.Time{}
	case keyRunningReady:
		a.enqueue(e, time.Now())
	}
}

// rest ends the turn of a key that failed. The key is ready again after this time, and not
// before.
func (a *agenda) rest(e *entry, after time.Duration) {
	a.active.remove(e)
	if e.state.waits() {
		a.unwait(e)
	}
	e.own = e.own || e.was // what it was due for is still to be done
	e.failures++
	e.since = time.Time{}
	e.state, e.notBefore = keyResting, time.Now().Add(after)
	heap.Push(&a.rests, e)
	a.set(a.rested, a.rests)
}

// drop removes a key from the agenda.
func (a *agenda) drop(e *entry) {
	if e.state.waits() {
		a.unwait(e)
	}
	switch {
	case e.state == keyReady:
		a.queue.remove(e)
	case e.state == keyResting:
		heap.Remove(&a.rests, e.place-1)
		a.set(a.rested, a.rests)
	case e.state.runs():
		a.active.remove(e)
	}
	*e = entry{key: e.key}
}

// running iterates over the keys that workers have.
func (a *agenda) running() iter.Seq[*entry] { return a.active.all }

// close stops the timers for ever. The keys stay as they are.
func (a *agenda) close() {
	a.closed = true
	a.rested.Stop()
	a.ripe.Stop()
}

// set sets a timer to the first time of a heap.
func (a *agenda) set(t *time.Timer, h keyHeap) {
	if a.closed || len(h) == 0 {
		t.Stop()
		return
	}
	t.Reset(time.Until(h[0].notBefore))
}

// keyState is the state of one key of an [agenda].
//
//	       due               release, hurry              next
//	idle ───────▶ waiting ───────────────────▶ ready ───────────▶ running
//	  │                          hurry          ▲ ▲               │     │
//	  └─────────────────────────────────────────┘ │          done │     │ rest
//	                                              │               ▼     ▼
//	                              the time is over│             idle  resting
//	                                              └──────────────────────┘
//
// A running key that gets due again stays with its worker, and goes on from there:
//
//	         due                    release, hurry
//	running ───────▶ runningWaiting ───────────────▶ runningReady
//	   │                │       │                       │     │
//	   │ hurry          │ done  │ rest             done │     │ rest
//	   ▼                ▼       ▼                       ▼     ▼
//	runningReady     waiting  resting                 ready  resting
//
// What is not drawn changes nothing: a resting key rests on, however much changes. Only drop leads
// from any state to idle.
type keyState uint8

const (
	keyIdle           keyState = iota // nothing is to be done
	keyWaiting                        // for a release, and for quiet where that is asked for
	keyReady                          // in the queue
	keyResting                        // waits after a failure, until a time
	keyRunning                        // a worker has it
	keyRunningWaiting                 // a worker has it, and its next turn already waits
	keyRunningReady                   // a worker has it, and its next turn is ready
)

// runs reports whether a worker has the key.
func (s keyState) runs() bool { return s >= keyRunning }

// waits reports whether the key waits for a release.
func (s keyState) waits() bool { return s == keyWaiting || s == keyRunningWaiting }

func (s keyState) String() string {
	return [...]string{"idle", "waiting", "ready", "resting", "running", "running, waiting", "running, ready"}[s]
}
