package accumulator

import (
	"maps"
	"slices"
)

// release puts the keys that wait for a signal, and for no quiet besides, into the queue, in order.
func (p *Partitions) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	if p.debounce == nil || len(p.found) > len(p.debounce.keys) { // what there was at first waits for nothing
		for key := range p.found {
			if p.parts[key].place == 0 {
				all = append(all, key)
			}
		}
	}
	if p.debounce != nil {
		all = append(all, p.ripe()...)
	}
	slices.Sort(all)
	for _, key := range all {
		p.enqueue(p.parts[key])
	}
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

// enqueue puts a key into the queue, whatever it has waited for, or sees to it that it comes there. Called with mu held.
func (p *Partitions) enqueue(part *partition) {
	p.wait(part.key, false)
	p.calm(part)
	if !part.due || part.queued {
		return
	}
	part.queued = true
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
