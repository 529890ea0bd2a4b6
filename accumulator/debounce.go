package accumulator

import (
	"context"
	"time"
)

// debounce holds keys back that changes have made due: each until nothing more has changed for it for
// a while, or it has waited for long enough. The agenda knows when that is. The goroutine of attend
// takes in what is new as it comes, whoever is at work, so that it is known when that was; it ends
// with the accumulator.
//
//	Changed ────▶ attend: advance, release ──▶ changed, for followers
//	agenda.ripe ────▲
type debounce struct {
	quiet, most time.Duration
	changed     chan struct{} // in place of the accumulator's
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
	return &debounce{quiet: quiet, most: most, changed: make(chan struct{}, 1)}
}

// attend is the goroutine.
func (p *Partitions) attend(ctx context.Context) {
	d := p.debounce
	defer close(d.changed)
	for {
		signal := false
		select {
		case _, open := <-p.a.Changed():
			if !open {
				return
			}
			signal = true
		case <-p.agenda.ripe.C:
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
