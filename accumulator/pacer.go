package accumulator

import (
	"time"

	"github.com/kates-go/kates/internal/lockorder"
)

// Pace says when an accumulator signals.
type Pace struct {
	// Interval is the least time between two signals. The first change after a quiet
	// interval is signalled at once.
	Interval time.Duration
	// Quiet holds a signal back until no change has come for so long: a debounce.
	// Zero switches it off.
	Quiet time.Duration
	// QuietMax is the longest a change waits for quiet. Zero means ten times Quiet.
	QuietMax time.Duration
}

// pacer turns changes into signals: at once after a quiet spell, then at most one per interval, and
// never none under constant churn. It has no goroutine of its own: a timer runs only while a signal
// is due later.
//
// A signal is due ─▶ news is asked, without the lock ─▶ it is given, or it is not worth giving.
//
// No signal is lost: a change that comes after news was asked is noted by poke, and is due in its
// turn. Signals may be spurious (see [Accumulator.Changed]).
type pacer struct {
	pace Pace
	// news reports whether there is something to tell. It is called without the pacer's lock, by
	// one goroutine at a time.
	news func() bool
	out  chan struct{}

	mu     lockorder.Mutex[lockorder.Pacer]
	closed bool
	last   time.Time // the last signal
	first  time.Time // the first change that no signal is due for yet, zero if none
	latest time.Time // the latest such change
	timer  *time.Timer
	armed  bool          // the timer runs
	asking bool          // somebody asks for news
	idle   chan struct{} // nil, or closed by who asks when that is over: close waits for it
}

func newPacer(p Pace, news func() bool) *pacer {
	if p.QuietMax <= 0 {
		p.QuietMax = 10 * p.Quiet
	}
	return &pacer{pace: p, news: news, out: make(chan struct{}, 1)}
}

// poke says that something changed.
func (p *pacer) poke() {
	p.mu.Lock()
	p.note()
	p.unlock()
}

// note notes a change. Called with mu held.
func (p *pacer) note() {
	if p.closed || (p.armed && p.pace.Quiet == 0) {
		return
	}
	p.latest = time.Now()
	if p.first.IsZero() {
		p.first = p.latest
	}
}

// ensure sees to it that a signal is due.
func (p *pacer) ensure() {
	p.mu.Lock()
	if p.first.IsZero() {
		p.note()
	}
	p.unlock()
}

// fire is what the timer does.
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

// due reports whether a signal is due now. It sets the timer if one is due later. Who asks for news
// looks again after that. Called with mu held.
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
	select {
	case p.out <- struct{}{}:
	default: // one is waiting already
	}
}

// close ends the signals and closes the channel. It returns when nobody asks for news any more.
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
