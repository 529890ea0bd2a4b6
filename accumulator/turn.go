package accumulator

import "sync/atomic"

// Turn is one key's time: nobody else has it until Done.
type Turn struct {
	Key string
	// Snapshot is a pointer to a fresh struct with the objects of the key.
	Snapshot any
	// Gone: no object has the key any more. All of the snapshot is empty, also of objects that belong to every partition. Only
	// what is looked up is there as ever.
	Gone bool
	// Attempt is 1, or more after turns of the key that ended with errors, in a row.
	Attempt int
	// Differences to the last turn of the key, whatever came of it: by query, then namespace and name. Of what is looked up they are those
	// of what that turn has read.
	Differences []Difference
	// Invalid objects of the key, by query, then namespace and name; none of what is looked up.
	Invalid []Invalid

	of    *Partitions
	part  *partition
	ended atomic.Bool
}

// hand makes a turn of a key from the queue, if there is a reason.
func (p *Partitions) hand(b layout, key string) *Turn {
	p.mu.Lock()
	part := p.parts[key]
	if part != nil {
		part.queued, part.resting = false, false
	}
	if part == nil || !part.due || !part.forced && !part.changed() {
		if part != nil {
			part.due = false
		}
		p.mu.Unlock()
		p.queue.Done(key)
		return nil
	}
	t := &Turn{Key: key, Gone: part.objects == 0, Attempt: p.queue.NumRequeues(key) + 1, of: p, part: part}
	part.due, part.forced, part.held, part.known = false, false, true, true
	p.held[part] = true
	p.mu.Unlock()
	t.Snapshot, t.Differences, t.Invalid = part.fill(b, t.Gone, &p.a.reader.mu)
	return t
}

// Done ends the turn: the key may be handed out again. With an error it will be, after its backoff, however much changes
// meanwhile; without one, when something of it changes, or has changed since. It is called once for each turn, by any goroutine;
// further calls do nothing, whoever has the key by then.
func (t *Turn) Done(err error) {
	if t.ended.Swap(true) {
		return
	}
	t.of.done(t, err)
	if t.of.a.found.Load() > 0 {
		t.of.a.pacer.ensure() // what it has read has changed, and maybe nothing else will
	}
}

func (p *Partitions) done(t *Turn, err error) {
	part := t.part
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conclude(part)
	part.held, part.ended = false, p.takes
	if err != nil {
		part.due, part.forced, part.queued, part.resting = true, true, true, true
		p.queue.AddRateLimited(t.Key)
	} else {
		p.queue.Forget(t.Key)
		if t.Gone {
			part.known = false
			p.emptied(part)
		}
		if part.queued {
			p.queue.Add(t.Key)
		}
	}
	p.queue.Done(t.Key)
}
