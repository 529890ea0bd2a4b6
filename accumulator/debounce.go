package accumulator

import (
	"context"
	"time"
)

// debounce holds keys back that changes have made due: each until nothing more has changed for it for a while, or it has waited long
// enough. Its goroutine takes in what is new as it comes, whoever is at work, so that it is known when that was; it ends with
// the accumulator.
//
//	Changed ──▶ attend: advance, release what is ripe ──▶ workqueue
//	timer ──────────▲                        └──▶ changed, for followers
type debounce struct {
	quiet, most time.Duration
	changed     chan struct{} // in place of the accumulator's
	ripe        chan struct{} // holds one signal: the timer's
	timer       *time.Timer   // to when the next key is ripe; guarded by the partitions' lock
}

// newDebounce returns nil if there is nothing to wait for, and leaves the pace without what is the keys' own.
func newDebounce(pace *Pace) *debounce {
	quiet, most := pace.Quiet, pace.QuietMax
	pace.Quiet, pace.QuietMax = 0, 0
	if quiet <= 0 {
		return nil
	}
	if most <= 0 {
		most = 10 * quiet
	}
	return &debounce{quiet: quiet, most: most, changed: make(chan struct{}, 1), ripe: make(chan struct{}, 1)}
}

// attend is the goroutine.
func (p *Partitions) attend(ctx context.Context) {
	d := p.debounce
	defer close(d.changed)
	defer p.stopRipening()
	for {
		signal := false
		select {
		case _, open := <-p.a.Changed():
			if !open {
				return
			}
			signal = true
		case <-d.ripe:
		}
		_, err := p.take(ctx, func(layout) *Turn {
			p.release()
			return nil
		})
		if err != nil {
			return
		}
		if signal {
			select {
			case d.changed <- struct{}{}:
			default: // one is waiting already
			}
		}
	}
}

// stirred notes that a key has changed. What there was at first does not wait. Called with mu held.
func (p *Partitions) stirred(part *partition) {
	if p.debounce == nil || !p.begun {
		return
	}
	part.latest = time.Now()
	if part.first.IsZero() {
		part.first = part.latest
	}
}

// ripens is when a key that waits for the signal has waited for long enough. Called with mu held.
func (p *Partitions) ripens(part *partition) time.Time {
	if part.first.IsZero() {
		return time.Time{}
	}
	at := part.latest.Add(p.debounce.quiet)
	if limit := part.first.Add(p.debounce.most); limit.Before(at) {
		return limit
	}
	return at
}

// wakeAt sees to it that what is ripe then is released. Called with mu held.
func (p *Partitions) wakeAt(at time.Time) {
	d := p.debounce
	switch wait := time.Until(at); {
	case at.IsZero():
	case d.timer == nil:
		d.timer = time.AfterFunc(wait, func() {
			select {
			case d.ripe <- struct{}{}:
			default: // one is waiting already
			}
		})
	default:
		d.timer.Reset(wait)
	}
}

func (p *Partitions) stopRipening() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.debounce.timer != nil {
		p.debounce.timer.Stop()
	}
}
