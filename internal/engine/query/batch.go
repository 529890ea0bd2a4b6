package query

import (
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
	// covers reports whether the batch says all about a name. Then an object of that name that
	// Changes lacks is gone. If covers is nil, a batch with All says all about every name, and
	// another batch about none.
	covers func(object.Key) bool
}

// Extent is how much a batch has.
type Extent int

const (
	// Nothing: there is nothing that may be shown yet. The rest of the batch is zero.
	Nothing Extent = iota
	// Some: what has changed.
	Some
	// All: all objects. Others that the reader has are gone, but for those that Gone spares.
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
// another. Neither has Refs.
func (b *Batch) ComesAfter(old, q Running) {
	b.Extent = All
	from, to := unionOf(old).current().resource.Storage, unionOf(q).current().resource.Storage
	b.Breaks |= Anew | when(Reshapes(old.Query(), q.Query()), Reshaped) | when(from != "" && to != "" && from != to, NewHistory)
}

// Emptied is the batch of a query of which nothing is there.
var Emptied = Batch{Extent: All, Absent: true}

// Gone reports whether an object of that name is gone, if the reader has one and Changes has none.
// Its deletion is worth a signal.
func (b Batch) Gone(key object.Key) bool {
	if b.covers != nil {
		return b.covers(key)
	}
	return b.Whole()
}

// Renews reports whether Gone is true of some names.
func (b Batch) Renews() bool { return b.Whole() || b.covers != nil }

// Whole reports whether the batch has all objects.
func (b Batch) Whole() bool { return b.Extent == All }

// batchOf converts a batch of one stream.
func batchOf(b audience.Batch) Batch {
	return Batch{Changes: b.Changes, Extent: extents[b.Extent], Signals: b.Signals, Breaks: when(b.NewHistory, NewHistory)}
}

// extents are those of a query with one stream. What a stream has lost stays as it is shown.
var extents = map[audience.Extent]Extent{audience.Lost: Some, audience.Some: Some, audience.Everything: All}

// addStream adds what a stream has to those of others, and keeps its changes. No two have one
// object.
func (b *Batch) addStream(t audience.Batch) {
	b.Extent, b.Breaks = max(b.Extent, Some), b.Breaks|when(t.NewHistory, NewHistory)
	if b.Changes == nil { // nearly always: one stream has all objects of a query, and a copy costs
		b.Changes = t.Changes
	} else {
		b.Changes = append(b.Changes, t.Changes...)
	}
	for key := range t.Signals {
		b.AddSignal(key)
	}
}

// AddSignal adds that a change of a key is worth a signal.
func (b *Batch) AddSignal(key object.Key) {
	if b.Signals == nil {
		b.Signals = make(map[object.Key]bool)
	}
	b.Signals[key] = true
}

// signalAll adds that each change is worth a signal.
func (b *Batch) signalAll(changes []audience.Change) {
	for _, c := range changes {
		b.AddSignal(c.Key)
	}
}

// Then combines two batches, b before next.
func (b Batch) Then(next Batch) Batch {
	switch {
	case !b.OK():
		return next
	case !next.OK():
		return b
	}
	out := Batch{
		Changes: next.Changes, Extent: max(b.Extent, next.Extent), Signals: next.Signals,
		Breaks: b.Breaks | next.Breaks, Absent: next.Absent,
	}
	all := b.Whole() && b.covers == nil || next.Whole() && next.covers == nil
	if !all && (b.covers != nil || next.covers != nil) {
		out.covers = func(key object.Key) bool { return b.Gone(key) || next.Gone(key) }
	}
	for key := range b.Signals {
		out.AddSignal(key)
	}
	later := make(map[object.Key]bool, len(next.Changes))
	for _, c := range next.Changes {
		later[c.Key] = true
	}
	for _, c := range b.Changes {
		if !later[c.Key] && !next.Gone(c.Key) {
			out.Changes = append(out.Changes, c)
		}
	}
	return out
}

// TakeMore takes what has changed in a query since its first batch was taken, which the reader
// does not have yet.
func TakeMore(q Running, first Batch) Batch {
	if !q.State().News {
		return first
	}
	return first.Then(q.Take(first.OK() && !first.Absent))
}
