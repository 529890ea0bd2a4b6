package accumulator

import (
	"container/heap"
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
	keys        ripening      // that wait; guarded by it, too
}

// ripening is a heap of partitions by when each is ripe at the earliest: a change that comes later moves none. So to release some costs
// nothing for those that wait on.
type ripening []*partition

func (r ripening) Len() int           { return len(r) }
func (r ripening) Less(i, j int) bool { return r[i].ripe.Before(r[j].ripe) }
func (r ripening) Swap(i, j int)      { r[i], r[j] = r[j], r[i]; r[i].place, r[j].place = i+1, j+1 }
func (r *ripening) Push(p any) {
	*r = append(*r, p.(*partition))
	(*r)[len(*r)-1].place = len(*r)
}

func (r *ripening) Pop() any {
	last := len(*r) - 1
	p := (*r)[last]
	(*r)[last] = nil
	*r, p.place = (*r)[:last], 0
	return p
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
	if part.place == 0 {
		part.first = part.latest
		part.ripe = p.ripens(part)
		heap.Push(&p.debounce.keys, part)
	}
}

// ripens is when a key that waits has waited for long enough. Called with mu held.
func (p *Partitions) ripens(part *partition) time.Time {
	at := part.latest.Add(p.debounce.quiet)
	if limit := part.first.Add(p.debounce.most); limit.Before(at) {
		return limit
	}
	return at
}

// ripe takes the keys that are ripe from those that wait, and sees to it that the next one is released. Called with mu held.
func (p *Partitions) ripe() (all []string) {
	d, now := p.debounce, time.Now()
	for len(d.keys) > 0 {
		first := d.keys[0]
		if first.ripe.After(now) {
			p.wakeAt(first.ripe)
			break
		}
		if first.ripe = p.ripens(first); first.ripe.After(now) {
			heap.Fix(&d.keys, 0)
			continue
		}
		all = append(all, first.key)
		p.calm(first)
	}
	return all
}

// calm lets a key wait no longer. Called with mu held.
func (p *Partitions) calm(part *partition) {
	if part.place > 0 {
		heap.Remove(&p.debounce.keys, part.place-1)
	}
}

// wakeAt sees to it that what is ripe then is released. Called with mu held.
func (p *Partitions) wakeAt(at time.Time) {
	d := p.debounce
	switch wait := time.Until(at); {
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
