package accumulator

import (
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/object"
)

// Turn is one key's time: nobody else has it until Done.
type Turn struct {
	Key string
	// Snapshot is a pointer to a fresh struct with the objects of the key.
	Snapshot any
	// Gone: no object has the key any more. All of the snapshot is empty, also of objects that belong to every partition, but where
	// [PartitionOptions.Lasting] says otherwise. Only what is looked up is there as ever.
	Gone bool
	// Attempt is 1, or more after turns of the key that ended with errors, in a row.
	Attempt int
	// Differences to the last turn of the key, whatever came of it: by query, then namespace and name. Of what is looked up they are those
	// of what that turn has read.
	Differences []Difference
	// Invalid objects of the key, by query, then namespace and name; none of what is looked up.
	Invalid []Invalid

	of     *Partitions
	part   *partition
	layout layout
	ended  atomic.Bool
}

// hand makes a turn of a key from the queue, if there is a reason.
func (p *Partitions) hand(b layout, key string) *Turn {
	p.mu.Lock()
	part := p.parts[key]
	if part != nil {
		part.queued, part.resting = false, false
	}
	if part == nil || !part.due || !part.forced && !part.changed(b) {
		if part != nil {
			part.due = false
		}
		p.mu.Unlock()
		p.queue.Done(key)
		return nil
	}
	t := &Turn{Key: key, Gone: part.objects == 0, Attempt: p.queue.NumRequeues(key) + 1, of: p, part: part, layout: b}
	part.due, part.forced, part.held, part.known = false, false, true, true
	p.held[part] = true
	p.mu.Unlock()
	t.Snapshot, t.Differences, t.Invalid = part.fill(b, t.Gone && !p.lasting, &p.a.reader.mu)
	return t
}

// Done ends the turn: the key may be handed out again. With an error it will be, after its backoff, however much changes
// meanwhile; without one, when something of it changes, or has changed since. It is called once for each turn, by any goroutine;
// further calls do nothing, whoever has the key by then.
func (t *Turn) Done(err error) {
	if err != nil {
		t.end(false, func(p *Partitions) { p.queue.AddRateLimited(t.Key) })
	} else {
		t.end(false, nil)
	}
}

// Again ends the turn like Done with an error, but its key rests for so long, whatever its backoff says.
func (t *Turn) Again(after time.Duration) {
	t.end(false, func(p *Partitions) {
		p.queue.limits.When(t.Key) // counts the attempt
		p.queue.AddAfter(t.Key, after)
	})
}

// Keep ends the turn like Done without an error; a key that is gone is not forgotten, but can be given another turn by
// [Partitions.Activate], which is as empty.
func (t *Turn) Keep() { t.end(true, nil) }

// end ends the turn; again, if any, sees to it that the key comes back.
func (t *Turn) end(keep bool, again func(*Partitions)) {
	if t.ended.Swap(true) {
		return
	}
	t.of.done(t, keep, again)
	if t.of.a.found.Load() > 0 {
		t.of.a.pacer.ensure() // what it has read has changed, and maybe nothing else will
	}
}

func (p *Partitions) done(t *Turn, keep bool, again func(*Partitions)) {
	part := t.part
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conclude(part)
	part.held, p.asked = false, p.takes
	if again != nil {
		part.due, part.forced, part.queued, part.resting = true, true, true, true
		again(p)
	} else {
		p.queue.Forget(t.Key)
		if t.Gone && !keep {
			part.known = false
			p.emptied(part)
		}
		if part.queued {
			p.queue.Add(t.Key)
		}
	}
	p.queue.Done(t.Key)
}

// Only returns the value of a query's field with those objects of the key's own for which keep holds: the snapshot's, if it
// holds for all of them. It is nil where the key has none of its own. It is called before the turn ends.
func (t *Turn) Only(query string, keep func(Object) bool) any {
	for i, f := range t.layout.fields {
		if f.name != query {
			continue
		}
		table := t.part.shares[i].table
		if table == nil {
			return nil
		}
		kept := newBatch(table.Held())
		for row := range table.All() {
			if keep(row.Source) {
				kept.put(object.KeyOf(row.Source), row)
			}
		}
		if len(kept.changes) < table.Held() {
			table = t.layout.NewTable(i)
			table.Apply(kept.changes)
		}
		return table.Value().Interface()
	}
	return nil
}
