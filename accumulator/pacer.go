package accumulator

import (
	"sync"
	"time"
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

// pacer turns changes into signals: at once after a quiet spell, then at most one
// per interval, and never none under constant churn. It has no goroutine: a timer
// fires only while a signal is due later.
type pacer struct {
	pace Pace
	// news reports whether there still is something to tell when a signal is due.
	news func() bool
	out  chan struct{}

	mu     sync.Mutex
	closed bool
	last   time.Time // the last signal
	first  time.Time // the first change since, zero if none
	latest time.Time // the latest change since
	timer  *time.Timer
	armed  bool
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
	defer p.mu.Unlock()
	if p.closed || (p.armed && p.pace.Quiet == 0) {
		return
	}
	now := time.Now()
	p.latest = now
	if p.first.IsZero() {
		p.first = now
	}
	if !p.armed {
		p.schedule(now)
	}
}

// ensure sees to it that a signal is due.
func (p *pacer) ensure() {
	p.mu.Lock()
	due := !p.first.IsZero()
	p.mu.Unlock()
	if !due {
		p.poke()
	}
}

// schedule signals if that is due, and sets the timer if it is not.
func (p *pacer) schedule(now time.Time) {
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
	wait := due.Sub(now)
	switch {
	case wait <= 0:
		p.signal(now)
	case p.timer == nil:
		p.armed = true
		p.timer = time.AfterFunc(wait, p.fire)
	default:
		p.armed = true
		p.timer.Reset(wait)
	}
}

func (p *pacer) fire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	if !p.closed && !p.first.IsZero() {
		p.schedule(time.Now())
	}
}

func (p *pacer) signal(now time.Time) {
	p.first, p.latest = time.Time{}, time.Time{}
	if !p.news() {
		return
	}
	p.last = now
	select {
	case p.out <- struct{}{}:
	default: // one is waiting already
	}
}

// close ends the signals and closes the channel.
func (p *pacer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	close(p.out)
}
