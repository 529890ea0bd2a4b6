package query

import (
	"maps"

	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/object"
)

// Batch is what has changed in a query since its last batch.
type Batch struct {
	Changes []audience.Change
	Extent  Extent
	// Signals are the keys whose change is worth a signal. With All, all are.
	Signals map[object.Key]bool
	Breaks  Breaks
	// Absent: the query is optional, and its kind is gone again.
	Absent bool
}

// Extent is how much a batch has.
type Extent int

const (
	// Nothing: there is nothing that may be shown yet. The rest of the batch is zero.
	Nothing Extent = iota
	// Some: what has changed.
	Some
	// All: all objects. Others that the reader has are gone.
	All
)

// Breaks are the reasons, ORed, why a batch does not go on from what the reader has.
type Breaks uint8

const (
	// NewHistory: versions do not compare with those that the reader has.
	NewHistory Breaks = 1 << iota
	// Reshaped: one version of an object may look different now.
	Reshaped
	// Anew: the query was replaced, and this is the first batch of the new one.
	Anew
)

// Has reports whether a reason is among them.
func (b Breaks) Has(reason Breaks) bool { return b&reason != 0 }

// when returns a reason if it holds.
func when(holds bool, reason Breaks) Breaks {
	if holds {
		return reason
	}
	return 0
}

// OK reports whether there is something that may be shown.
func (b Batch) OK() bool { return b.Extent != Nothing }

// ComesAfter makes the first batch of a query the first one of a query that takes the place of
// another.
func (b *Batch) ComesAfter(old, q Query) {
	b.Extent = All
	b.Breaks |= when(Reshapes(old, q), Reshaped)
}

// Whole reports whether the batch has all objects.
func (b Batch) Whole() bool { return b.Extent == All }

// batchOf converts a batch of one stream.
func batchOf(b audience.Batch) Batch {
	return Batch{Changes: b.Changes, Extent: extents[b.Extent], Signals: b.Signals, Breaks: when(b.NewHistory, NewHistory)}
}

// extents are those of a query with one stream. What a stream has lost stays as it is shown.
var extents = map[audience.Extent]Extent{audience.Lost: Some, audience.Some: Some, audience.Everything: All}

// addStream adds what a stream has to those of others. No two have one object.
func (b *Batch) addStream(t audience.Batch) {
	b.Extent, b.Breaks = max(b.Extent, Some), b.Breaks|when(t.NewHistory, NewHistory)
	b.Changes = append(b.Changes, t.Changes...)
	for key := range t.Signals {
		b.signal(key)
	}
}

// signal adds that a change of a key is worth a signal.
func (b *Batch) signal(key object.Key) {
	if b.Signals == nil {
		b.Signals = make(map[object.Key]bool)
	}
	b.Signals[key] = true
}

// then combines two batches, b before next.
func (b Batch) then(next Batch) Batch {
	switch {
	case !b.OK():
		return next
	case !next.OK():
		return b
	}
	next.Breaks |= b.Breaks
	for key := range b.Signals {
		next.signal(key)
	}
	if next.Whole() {
		return next
	}
	next.Extent = b.Extent
	later := make(map[object.Key]bool, len(next.Changes))
	for _, c := range next.Changes {
		later[c.Key] = true
	}
	for _, c := range b.Changes {
		if !later[c.Key] {
			next.Changes = append(next.Changes, c)
		}
	}
	return next
}

// TakeMore takes what has changed in a query since its first batch was taken, which the reader
// does not have yet.
func TakeMore(q interface {
	News() bool
	Take(Shown) Batch
}, first Batch) Batch {
	if !q.News() {
		return first
	}
	return first.then(q.Take(newTaken(first)))
}

// taken is what a reader will have of a query once it has a first batch.
type taken struct {
	objects map[object.Key]object.Object
	present bool
}

func newTaken(first Batch) taken {
	t := taken{make(map[object.Key]object.Object, len(first.Changes)), first.OK() && !first.Absent}
	for _, c := range first.Changes {
		if c.Object != nil {
			t.objects[c.Key] = c.Object
		}
	}
	return t
}

func (t taken) Get(key object.Key) (object.Object, bool) {
	o, ok := t.objects[key]
	return o, ok
}

func (t taken) Keys(yield func(object.Key) bool) { maps.Keys(t.objects)(yield) }
func (t taken) Present() bool                    { return t.present }
