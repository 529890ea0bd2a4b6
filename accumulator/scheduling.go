package accumulator

import (
	"maps"
	"slices"
)

// release puts the keys that wait for a signal into the queue, in order.
func (p *Partitions) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.found)
	for _, key := range p.found {
		if part := p.parts[key]; part != nil && part.found {
			part.found = false
			p.enqueue(part)
		}
	}
	p.found = nil
	p.a.found.Store(0)
}

// enqueue is called with mu held.
func (p *Partitions) enqueue(part *partition) {
	if !part.due || part.queued {
		return
	}
	part.queued = true
	if !part.held && !part.resting {
		p.queue.Add(part.key)
	}
}

// Activate makes partitions due, though nothing may have changed: of some keys, or, without any, all there are. Keys that there is no
// partition of are none. What is held, or rests after an error, comes when that is over.
func (p *Partitions) Activate(keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if keys == nil {
		keys = slices.Sorted(maps.Keys(p.parts))
	}
	for _, key := range keys {
		if part := p.parts[key]; part != nil {
			part.due, part.forced = true, true
			p.enqueue(part)
		}
	}
}
