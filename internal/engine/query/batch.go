package query

import (
	"maps"

	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/object"
)

// Batch is what has changed in a query since its last batch.
type Batch struct {
	Changes []audience.Change
	// Whole: Changes has all objects. Others that the reader has are gone.
	Whole bool
	// Signals are the keys whose change is worth a signal. With Whole, all are.
	Signals map[object.Key]bool
	// NewHistory: versions do not compare with those that the reader has.
	NewHistory bool
	// Reshaped: one version of an object may look different now.
	Reshaped bool
	// Anew: the query was replaced, and this is the first batch of the new one.
	Anew bool
	// Absent: the query is optional, and its kind is gone again.
	Absent bool
	// OK is false if there is nothing that may be shown yet. Then the rest is zero.
	OK bool
}

// batchOf converts a batch of one stream.
func batchOf(b audience.Batch) Batch {
	return Batch{
		Changes: b.Changes, Whole: b.Extent == audience.Everything, Signals: b.Signals,
		NewHistory: b.NewHistory, OK: b.Extent != audience.Unknown,
	}
}

// addStream adds what a stream has to those of others. No two have one object.
func (b *Batch) addStream(t audience.Batch) {
	b.OK, b.NewHistory = true, b.NewHistory || t.NewHistory
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
	case !b.OK:
		return next
	case !next.OK:
		return b
	}
	next.NewHistory, next.Reshaped = next.NewHistory || b.NewHistory, next.Reshaped || b.Reshaped
	next.Anew = next.Anew || b.Anew
	for key := range b.Signals {
		next.signal(key)
	}
	if next.Whole {
		return next
	}
	next.Whole = b.Whole
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
	t := taken{make(map[object.Key]object.Object, len(first.Changes)), first.OK && !first.Absent}
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
