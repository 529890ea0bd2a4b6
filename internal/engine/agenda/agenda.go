package agenda

import (
	"container/heap"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Agenda has the state of each key: whether it waits, is ready, runs or rests, how often in a row
// it has failed, and the time before which it does not run.
//
// It replaces client-go's work queue, which does not tell which keys are queued, run and rest.
// That queue also keeps keys that are no longer wanted, knows no wait for quiet and no classes,
// and has a goroutine that outlives ShutDown. Here each fact is in one place, a key can leave at
// any time, and two timers without a goroutine keep the time.
//
// A release is O(released), not O(waiting). A wait for quiet or a rest costs O(log keys).
//
// The caller's lock guards everything but the channels and the backlog. It guards the entries too:
// the caller has each as a field. So an agenda allocates nothing for a turn.
type Agenda struct {
	// A worker without a key waits for both: signal holds a value when a key may have become
	// ready, rested when a rest may be over.
	signal chan struct{}
	rested *time.Timer
	// quiet holds a value when a release may find a key that has become quiet.
	quiet    *time.Timer
	debounce Debounce
	closed   bool

	due        keySet       // waiting, for a release alone
	untilQuiet keyHeap      // waiting, for quiet
	queue      queue        // ready, in order
	rests      keyHeap      // resting
	active     keyList      // with a worker
	backlog    atomic.Int64 // how many keys wait
}

// Debounce delays keys that changes have made due: a key waits until it has had no change for the
// time Quiet, or has waited for the time Most. Without Quiet no key is delayed. Without Most it is
// ten times Quiet.
type Debounce struct{ Quiet, Most time.Duration }

// New returns an agenda of no keys.
func New(d Debounce) *Agenda {
	if d.Most <= 0 {
		d.Most = 10 * d.Quiet
	}
	a := &Agenda{signal: make(chan struct{}, 1), debounce: d}
	a.rested, a.quiet = time.NewTimer(forever), time.NewTimer(forever)
	a.rested.Stop()
	a.quiet.Stop()
	return a
}

// forever is longer than any program runs.
const forever = 1<<63 - 1

// KeyReady returns a channel that holds a value when a key may have become ready. One of the
// workers without a key receives it.
func (a *Agenda) KeyReady() <-chan struct{} { return a.signal }

// RestOver returns a channel that holds a value when the rest of a key may be over. One of the
// workers without a key receives it.
func (a *Agenda) RestOver() <-chan time.Time { return a.rested.C }

// KeyQuiet returns a channel that holds a value when a key may have become quiet. Who receives it
// calls [Agenda.Release].
func (a *Agenda) KeyQuiet() <-chan time.Time { return a.quiet.C }

// PutAhead puts a key into the first class: it is due for itself, and not because all keys are. A
// key that is ready moves to the end of the queue of that class.
func (a *Agenda) PutAhead(e *Entry) {
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

// MakeDue makes a key due at the next release.
func (a *Agenda) MakeDue(e *Entry) {
	if a.beginWait(e) {
		a.due.add(e)
	}
}

// MakeDueOnceQuiet makes a changed key due: at the first release after it is quiet. Without a
// debounce it is [Agenda.MakeDue].
func (a *Agenda) MakeDueOnceQuiet(e *Entry) {
	if a.debounce.Quiet <= 0 {
		a.MakeDue(e)
		return
	}
	switch now := time.Now(); {
	case a.beginWait(e):
		a.awaitQuiet(e, now)
	case !e.state.waits():
	case e.notBefore.IsZero():
		a.due.remove(e)
		a.awaitQuiet(e, now)
	default:
		e.latest = now
	}
}

// beginWait begins a key's wait for a release, unless it is already due, or rests.
func (a *Agenda) beginWait(e *Entry) bool {
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

// Waiting reports whether keys wait for a signal. It needs no lock.
func (a *Agenda) Waiting() bool { return a.backlog.Load() > 0 }

// awaitQuiet begins a key's wait for quiet.
func (a *Agenda) awaitQuiet(e *Entry, now time.Time) {
	e.first, e.latest = now, now
	e.notBefore = a.quietAt(e)
	heap.Push(&a.untilQuiet, e)
	a.setTimer(a.quiet, a.untilQuiet)
}

// quietAt returns the time at which a key has waited long enough, if it does not change again.
func (a *Agenda) quietAt(e *Entry) time.Time {
	at := e.latest.Add(a.debounce.Quiet)
	if limit := e.first.Add(a.debounce.Most); limit.Before(at) {
		return limit
	}
	return at
}

// Release makes the waiting keys ready, in their order: since the time of their signal. Of the
// keys that wait for quiet, it takes those that have waited long enough.
func (a *Agenda) Release(signal time.Time) {
	now, all := time.Now(), a.due
	for _, e := range all {
		e.since = signal
	}
	for len(a.untilQuiet) > 0 && !a.untilQuiet[0].notBefore.After(now) {
		e := a.untilQuiet[0]
		// the key changed after it entered the heap: its time is computed again
		if e.notBefore = a.quietAt(e); e.notBefore.After(now) {
			heap.Fix(&a.untilQuiet, 0)
			continue
		}
		heap.Pop(&a.untilQuiet)
		e.since = e.notBefore
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y *Entry) int { return strings.Compare(x.Key, y.Key) })
	for _, e := range all {
		e.place, e.notBefore = 0, time.Time{}
		a.backlog.Add(-1)
		a.becomeReady(e, e.since)
	}
	clear(all)
	a.due = all[:0]
	a.setTimer(a.quiet, a.untilQuiet)
}

// MakeReady makes a key ready now, whatever it waits for. It does not shorten a rest.
func (a *Agenda) MakeReady(e *Entry) {
	if e.state.waits() {
		a.endWait(e)
	}
	a.becomeReady(e, time.Now())
}

// endWait ends a key's wait for a release. The caller sets the next state.
func (a *Agenda) endWait(e *Entry) {
	if e.notBefore.IsZero() {
		a.due.remove(e)
	} else {
		heap.Remove(&a.untilQuiet, e.place-1)
		e.notBefore = time.Time{}
		a.setTimer(a.quiet, a.untilQuiet)
	}
	a.backlog.Add(-1)
}

// becomeReady puts a key that no longer waits into the queue. If a worker has the key, Done
// does it later.
func (a *Agenda) becomeReady(e *Entry, since time.Time) {
	switch e.state {
	case keyRunning, keyRunningWaiting:
		e.state = keyRunningReady
	case keyIdle, keyWaiting:
		a.enqueue(e, since)
	}
}

func (a *Agenda) enqueue(e *Entry, since time.Time) {
	e.state, e.since = keyReady, since
	a.queue.push(e)
	a.WakeWorker()
}

// WakeWorker wakes a worker that waits for a key.
func (a *Agenda) WakeWorker() {
	select {
	case a.signal <- struct{}{}:
	default: // one is woken already
	}
}

// Pending reports whether Next would return a key.
func (a *Agenda) Pending() bool {
	a.endRests()
	return a.queue.next() != nil
}

// Next hands out the key that has been ready for longest, in the class whose turn it is; nil if
// there is none. It returns since when the key was ready.
func (a *Agenda) Next() (e *Entry, since time.Time) {
	a.endRests()
	if e = a.queue.removeNext(); e == nil {
		return nil, time.Time{}
	}
	a.active.push(e)
	since, e.since = e.since, time.Now()
	e.state = keyRunning
	e.own, e.was = false, e.own
	return e, since
}

// endRests makes the keys ready whose rest is over.
func (a *Agenda) endRests() {
	if len(a.rests) == 0 {
		return
	}
	for now := time.Now(); len(a.rests) > 0 && !a.rests[0].notBefore.After(now); {
		e := heap.Pop(&a.rests).(*Entry)
		since := e.notBefore
		e.notBefore = time.Time{}
		a.enqueue(e, since)
	}
	a.setTimer(a.rested, a.rests)
}

// Done ends the turn of a key that did not fail.
func (a *Agenda) Done(e *Entry) {
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

// Rest ends the turn of a key that failed. The key is ready again after this time, and not
// before.
func (a *Agenda) Rest(e *Entry, after time.Duration) {
	a.active.remove(e)
	if e.state.waits() {
		a.endWait(e)
	}
	e.own = e.own || e.was // what it was due for is still to be done
	e.failures++
	e.since = time.Time{}
	e.state, e.notBefore = keyResting, time.Now().Add(after)
	heap.Push(&a.rests, e)
	a.setTimer(a.rested, a.rests)
}

// Drop removes a key from the agenda.
func (a *Agenda) Drop(e *Entry) {
	if e.state.waits() {
		a.endWait(e)
	}
	switch {
	case e.state == keyReady:
		a.queue.remove(e)
	case e.state == keyResting:
		heap.Remove(&a.rests, e.place-1)
		a.setTimer(a.rested, a.rests)
	case e.state.runs():
		a.active.remove(e)
	}
	*e = Entry{Key: e.Key}
}

// Running iterates over the keys that workers have.
func (a *Agenda) Running() iter.Seq[*Entry] { return a.active.all }

// Close stops the timers for ever. The keys stay as they are.
func (a *Agenda) Close() {
	a.closed = true
	a.rested.Stop()
	a.quiet.Stop()
}

// setTimer sets a timer to the first time of a heap.
func (a *Agenda) setTimer(t *time.Timer, h keyHeap) {
	if a.closed || len(h) == 0 {
		t.Stop()
		return
	}
	t.Reset(time.Until(h[0].notBefore))
}
