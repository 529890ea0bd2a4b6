package accumulator

import (
	"maps"
	"slices"
	"time"
)

// release puts the keys that wait for a signal into the queue, in order.
func (p *Partitions) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var next time.Time
	for _, key := range slices.Sorted(maps.Keys(p.found)) {
		part := p.parts[key]
		if at := p.ripens(part); at.After(now) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		p.enqueue(part)
		p.wait(key, false)
	}
	p.wakeAt(next)
	p.tidy()
}

// tidy takes keys from the queue that there is no partition of any more, before there are more of them than of others (G3). Called with
// mu held, and in the reader's turn.
func (p *Partitions) tidy() {
	n := p.queue.Len()
	if n <= 2*len(p.parts)+spareKeys {
		return
	}
	for range n {
		key, ok := p.queue.pop()
		if !ok {
			return
		}
		p.queue.Done(key)
		if part := p.parts[key]; part != nil && part.queued {
			p.queue.Add(key)
		}
	}
}

// spareKeys may wait in the queue for nothing.
const spareKeys = 100

// enqueue is called with mu held.
func (p *Partitions) enqueue(part *partition) {
	if !part.due || part.queued {
		return
	}
	part.queued, part.first = true, time.Time{}
	if !part.held && !part.resting {
		p.queue.Add(part.key)
	}
}

// Activate makes the partitions of some keys due, though nothing may have changed. Keys that there is no partition of are none.
// What is held, or rests after an error, comes when that is over.
func (p *Partitions) Activate(keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.force(keys)
}

// ActivateAll is [Partitions.Activate] for all partitions that there are.
func (p *Partitions) ActivateAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.force(slices.Sorted(maps.Keys(p.parts)))
}

// force is called with mu held.
func (p *Partitions) force(keys []string) {
	p.asked = p.takes
	for _, key := range keys {
		if part := p.parts[key]; part != nil {
			part.due, part.forced = true, true
			p.enqueue(part)
		}
	}
}
