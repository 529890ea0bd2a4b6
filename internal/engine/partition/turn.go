package partition

import (
	"slices"
	"time"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// hand makes a turn of the next key, if there is one with a reason for a turn.
func (p *Partitions) hand() *Turn {
	began := time.Now()
	t := p.scheduler.next(p.indexes.changed)
	if t == nil {
		return nil
	}
	t.of = p
	p.indexes.fill(t)
	p.collector.Updated(t.Key, began, true, t.Differences)
	p.collector.Hand(collect.Delivery{Moment: collect.TurnBegins, Key: t.Key, Filled: t.filled})
	return t
}

// Done ends the turn, and the key may be handed out again. After an error it is handed out again
// after its backoff, whatever changes meanwhile. Otherwise it is handed out when one of its
// objects changes, or has changed during the turn. Done is called once for each turn, by any
// goroutine. Further calls do nothing.
func (t *Turn) Done(err error) {
	if err == nil {
		t.end((*scheduler).succeed)
		return
	}
	t.end((*scheduler).fail)
}

// Again ends the turn like Done with an error, but its key rests for this time instead of its
// backoff.
func (t *Turn) Again(after time.Duration) {
	t.end(func(s *scheduler, part *partition) { s.rest(part, after) })
}

// Keep ends the turn like Done without an error, but does not forget a key that is gone.
// [Partitions.Trigger] can give it another turn, which is empty too.
func (t *Turn) Keep() { t.end((*scheduler).keep) }

// end ends the turn with an outcome, once.
func (t *Turn) end(outcome func(*scheduler, *partition)) {
	if t.ended.Swap(true) {
		return
	}
	t.of.collector.Hand(collect.Delivery{Moment: collect.TurnEnds, Key: t.Key})
	t.of.scheduler.end(t.part, outcome)
	t.of.ensureSignal() // what the turn has read may have changed without another signal
}

// Only returns the value of a query's field with those of the key's own objects for which keep
// returns true. If that is all of them, it is the snapshot's value. It is nil if the key has no
// objects of its own. Only must be called before the turn ends.
func (t *Turn) Only(query string, keep func(object.Object) bool) any {
	i, table := t.table(query)
	if table == nil {
		return nil
	}
	kept := tables.NewChanges(table.Held())
	for row := range table.All() {
		if keep(row.Source) {
			kept.Put(object.KeyOf(row.Source), row)
		}
	}
	if len(kept.All) < table.Held() {
		table = t.binding.NewTable(i)
		table.Apply(kept.All)
	}
	return table.Value().Interface()
}

// First returns the object that the first element of a query's field was made of, among the key's
// own; nil if there is none. It must be called before the turn ends.
func (t *Turn) First(query string) object.Object {
	_, table := t.table(query)
	if table == nil {
		return nil
	}
	for row := range table.All() {
		if row.Shown() {
			return row.Source
		}
	}
	return nil
}

// table returns the key's own objects of a query, nil if there are none.
func (t *Turn) table(query string) (i int, own *tables.Table) {
	i = slices.IndexFunc(t.fields, func(f *field) bool { return f.Name == query })
	if i < 0 {
		return i, nil
	}
	return i, t.part.shares[i].table
}
