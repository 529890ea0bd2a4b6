package partition

import (
	"maps"
	"slices"
)

// release makes the keys ready that wait for a signal and are quiet, in order.
func (p *Partitions) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agenda.release()
}

// pending reports whether a key is ready.
func (p *Partitions) pending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agenda.pending()
}

// waiting reports whether keys wait for a signal.
func (p *Partitions) waiting() bool { return p.agenda.backlog.Load() > 0 }

// ensureSignal makes sure that a signal follows if a key waits for one.
func (p *Partitions) ensureSignal() {
	if p.waiting() {
		p.collector.Ensure()
	}
}

// Activate makes the partitions of these keys due, even if nothing has changed. It ignores keys
// without a partition. A key that runs, or rests after an error, is due after that.
func (p *Partitions) Activate(keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.force(keys)
}

// ActivateAll is [Partitions.Activate] for all partitions.
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
			part.forced = true
			p.agenda.hurry(&part.entry)
		}
	}
}

// activate makes a partition due at the next signal, or, with a debounce, once it is quiet. The
// first turns do not wait for quiet. Called with mu held.
func (p *Partitions) activate(part *partition) {
	if p.debounce == nil || !p.begun {
		p.agenda.want(&part.entry)
	} else {
		p.agenda.stir(&part.entry)
	}
}
