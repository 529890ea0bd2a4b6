package collect

import (
	"reflect"
	"slices"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
)

// Witness is told what one watch hands out, so that a test finds out who writes to it. It reads
// what it is given, and changes nothing. Its methods are called without locks, by several
// goroutines at a time.
type Witness interface {
	// Shown is called before anybody gets a value. It is an object as its query holds it, or was
	// made of that.
	Shown(query string, source object.Object, value any)
	// Gone is called when the watch does not show an object any more.
	Gone(query string, o object.Object)
	// Lent is called before a function of the user gets objects as their query holds them. What it
	// returns is called when the function has returned, or panicked. One of the objects may be
	// nil.
	Lent(to, query string, one, other object.Object) (returned func())
	// Delivered is called when the user gets a snapshot, a turn or an answer, and when a turn
	// ends.
	Delivered(Delivery)
}

// WitnessOption is the option of watches that sets Options.Witness. Only package katestest has
// one. Package kates takes it wherever it takes a kates.WatchOption, and asks it in place of the
// methods that this type has.
type WitnessOption interface {
	// Witness returns the witness of one watch. The text says what is watched.
	Witness(watch string) Witness
}

// Moment says when something is delivered.
type Moment int

const (
	NewSnapshot  Moment = iota // one that differs from the last one
	SameSnapshot               // one that does not
	TurnBegins                 // of a key
	TurnEnds
	Answered // by a [lister.Reader]
)

// Delivery is what a [Witness] is told of a moment.
type Delivery struct {
	Moment Moment
	Key    string // of a turn
	// Filled are the slices and maps that the user gets, which are shared, too.
	Filled []Filled
}

// Filled is the slice or the map of a query's field.
type Filled struct {
	Query string
	Value reflect.Value
}

// Witnessed reports whether there is a witness.
func (r *rows) Witnessed() bool { return r.witness != nil }

// Hand tells the witness, if there is one, what the user gets.
func (r *rows) Hand(d Delivery) {
	if r.witness != nil {
		lockorder.CallOut("Options.Witness")
		r.witness.Delivered(d)
	}
}

// Gone tells the witness, if there is one, that an object is shown no more.
func (r *rows) Gone(query string, o object.Object) {
	if r.witness != nil {
		lockorder.CallOut("Options.Witness")
		r.witness.Gone(query, o)
	}
}

// Lend tells the witness, if there is one, that a function of the user gets one object, or two.
// What it returns is called when the function has returned.
func (r *rows) Lend(to, query string, one, other object.Object) (returned func()) {
	if r.witness == nil {
		return func() {}
	}
	lockorder.CallOut("Options.Witness")
	return r.witness.Lent(to, query, one, other)
}

// witnessed wraps the functions of the queries: the witness hears of each object that one of them
// gets. Transform is not wrapped: nobody else has its object yet.
func (r *rows) witnessed(queries []query.Query) []query.Query {
	if r.witness == nil {
		return queries
	}
	queries = slices.Clone(queries)
	for i := range queries {
		q := &queries[i]
		name := q.Name
		if key := q.Key; key != nil {
			q.Key = func(o object.Object) []string {
				defer r.Lend("the Key function", name, o, nil)()
				return key(o)
			}
		}
		if signal := q.Signal; signal != nil {
			q.Signal = func(old, current object.Object) bool {
				defer r.Lend("the Signal function", name, old, current)()
				return signal(old, current)
			}
		}
		q.Refs = slices.Clone(q.Refs)
		for j, ref := range q.Refs {
			q.Refs[j].Names = func(o object.Object) ([]object.Key, error) {
				defer r.Lend("the Refs function", ref.Query, o, nil)()
				return ref.Names(o)
			}
		}
	}
	return queries
}
