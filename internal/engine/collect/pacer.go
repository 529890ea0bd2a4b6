package collect

import (
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Pace says when a collector signals.
type Pace struct {
	// Interval is the least time between two signals. The first change after a quiet
	// interval is signalled at once.
	Interval time.Duration
	// Quiet delays a signal until no change has come for this time: a debounce. Zero switches it
	// off.
	Quiet time.Duration
	// QuietMax is the longest time that Quiet delays a signal. Zero means ten times Quiet.
	QuietMax time.Duration
}

// pacer turns changes into signals: at once after a quiet interval, then at most one per
// interval, and still some under constant change. It has no goroutine of its own. A timer runs
// only while a signal is due later.
//
// A signal is due ─▶ news is asked, without the lock ─▶ the signal is given, if there is news.
//
// No signal is lost: poke notes a change that comes after the question, and that change causes
// the next question. A change that comes while a signal waits in the channel needs no other: the
// reader receives that signal later, and then sees the change. Signals may be spurious (see
// [Collector.Changed]).
type pacer struct {
	pace Pace
	// news reports whether a signal is worth giving. It is called without the pacer's lock, by
	// one goroutine at a time.
	news func() bool
	out  chan struct{}

	mu      lockorder.Mutex[lockorder.Pacer]
	closed  bool
	last    time.Time // the last signal
	signals uint64    // how many there were
	first   time.Time // the first change without a signal that is due; zero: none
	latest  time.Time // the latest such change
	timer   *time.Timer
	armed   bool          // the timer runs
	asking  bool          // a goroutine asks for news
	idle    chan struct{} // close waits for it; the goroutine that asks closes it
}

func newPacer(p Pace, news func() bool) *pacer {
	if p.QuietMax <= 0 {
		p.QuietMax = 10 * p.Quiet
	}
	return &pacer{pace: p, news: news, out: make(chan struct{}, 1)}
}

// poke notes a change, and gives the signals that are due.
func (p *pacer) poke() {
	p.mu.Lock()
	p.note()
	p.unlock()
}

// note notes a change. Called with mu held.
func (p *pacer) note() {
	if p.closed || len(p.out) == cap(p.out) || (p.armed && p.pace.Quiet == 0) {
		return
	}
	p.latest = time.Now()
	if p.first.IsZero() {
		p.first = p.latest
	}
}

// ensure makes sure that a signal is due.
func (p *pacer) ensure() {
	p.mu.Lock()
	if p.first.IsZero() {
		p.note()
	}
	p.unlock()
}

// fire runs when the timer fires.
func (p *pacer) fire() {
	p.mu.Lock()
	p.armed = false
	p.unlock()
}

// unlock gives the signals that are due, and releases the lock.
func (p *pacer) unlock() {
	for p.due() {
		p.first, p.latest = time.Time{}, time.Time{}
		p.asking = true
		p.mu.Unlock()
		news := p.news()
		p.mu.Lock()
		p.asking = false
		if p.idle != nil {
			close(p.idle)
			p.idle = nil
		}
		if news {
			p.signal()
		}
	}
	p.mu.Unlock()
}

// due reports whether a signal is due now. It sets the timer if one is due later. While a
// goroutine asks for news, none is due; that goroutine calls due again. Called with mu held.
func (p *pacer) due() bool {
	if p.closed || p.armed || p.asking || p.first.IsZero() {
		return false
	}
	due := p.first
	if p.pace.Quiet > 0 {
		due = p.latest.Add(p.pace.Quiet)
		if limit := p.first.Add(p.pace.QuietMax); limit.Before(due) {
			due = limit
		}
	}
	if next := p.last.Add(p.pace.Interval); !p.last.IsZero() && next.After(due) {
		due = next
	}
	if !due.After(p.latest) {
		return true // without a look at the clock
	}
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	p.armed = true
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, p.fire)
	} else {
		p.timer.Reset(wait)
	}
	return false
}

// signal is called with mu held.
func (p *pacer) signal() {
	if p.closed {
		return
	}
	p.last = time.Now()
	p.signals++
	select {
	case p.out <- struct{}{}:
	default: // one waits already
	}
}

// given returns how many signals were given, and when the last one.
func (p *pacer) given() (n uint64, last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signals, p.last
}

// close ends the signals and closes the channel. It returns when no goroutine asks for news.
func (p *pacer) close() {
	p.mu.Lock()
	if p.asking && p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	if !p.closed {
		p.closed = true
		if p.timer != nil {
			p.timer.Stop()
		}
		close(p.out)
	}
	p.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
