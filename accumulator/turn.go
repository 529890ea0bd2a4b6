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

// hand makes a turn of the next key, if there is one, and a reason.
func (p *Partitions) hand(b layout) *Turn {
	p.mu.Lock()
	e := p.agenda.next()
	if e == nil {
		p.mu.Unlock()
		return nil
	}
	part := p.parts[e.key]
	if !part.forced && !part.changed(b) {
		p.agenda.done(e)
		p.mu.Unlock()
		return nil
	}
	t := &Turn{Key: e.key, Gone: part.objects == 0, Attempt: e.failures + 1, of: p, part: part, layout: b}
	part.forced, part.owed, part.gone = false, true, t.Gone
	p.mu.Unlock()
	t.Snapshot, t.Differences, t.Invalid = part.fill(b, t.Gone && !p.lasting, &p.a.reader.mu)
	return t
}

// Done ends the turn: the key may be handed out again. With an error it will be, after its backoff, however much changes
// meanwhile; without one, when something of it changes, or has changed since. It is called once for each turn, by any goroutine;
// further calls do nothing, whoever has the key by then.
func (t *Turn) Done(err error) {
	if err == nil {
		t.end((*partition).succeed)
		return
	}
	t.end(func(part *partition, p *Partitions) { part.fail(p, p.backoff.After(part.failures+1)) })
}

// Again ends the turn like Done with an error, but its key rests for so long, whatever its backoff says.
func (t *Turn) Again(after time.Duration) {
	t.end(func(part *partition, p *Partitions) { part.fail(p, after) })
}

// Keep ends the turn like Done without an error; a key that is gone is not forgotten, but can be given another turn by
// [Partitions.Activate], which is as empty.
func (t *Turn) Keep() { t.end((*partition).keep) }

// end ends the turn with an outcome, once.
func (t *Turn) end(outcome func(*partition, *Partitions)) {
	if t.ended.Swap(true) {
		return
	}
	p := t.of
	p.mu.Lock()
	p.conclude(t.part)
	p.asked = p.takes
	outcome(t.part, p)
	p.mu.Unlock()
	p.ensureSignal() // what the turn has read has changed, and maybe nothing else will
}

// succeed ends a turn. A partition that is gone has had its last one. Called with mu held.
func (part *partition) succeed(p *Partitions) {
	part.keep(p)
	if part.gone {
		part.owed = false
		p.emptied(part)
	}
}

// keep ends a turn, and keeps a partition that is gone. Called with mu held.
func (part *partition) keep(p *Partitions) { p.agenda.done(&part.entry) }

// fail ends a turn that is to be repeated, whatever changes. Called with mu held.
func (part *partition) fail(p *Partitions, after time.Duration) {
	part.forced = true
	p.agenda.rest(&part.entry, after)
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
