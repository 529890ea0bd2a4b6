package stream

import (
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/object"
)

// Point names a moment at which tests let other things happen: between two steps that are each
// under a lock, but not both under one. What happens there can also happen in production.
type Point string

// The points of a stream and of those that read it.
const (
	AtUpdate   Point = "update"   // an Update has its turn, and looks next whether all is complete
	AtComplete Point = "complete" // all is complete, and is about to be taken
	AtTake     Point = "take"     // a batch is about to be taken from a stream
	AtNames    Point = "names"    // the names in objects are known; objects may wait for them
	AtNamed    Point = "named"    // what has changed of the named objects is about to be taken
	AtTaken    Point = "taken"    // everything has been taken, and is about to be shown
	AtList     Point = "list"     // a list is about to be asked for
	AtListed   Point = "listed"   // a list is complete, and is about to replace the store
	AtWatch    Point = "watch"    // a watch is about to be opened
	AtCommit   Point = "commit"   // a stream is about to take in an own write
	AtSettle   Point = "settle"   // the server has told what an own write means to a stream
	AtLand     Point = "land"     // all streams have an own write
)

// Moment is a point that has been reached.
type Moment struct {
	Point
	Stream ID         // zero where no stream is concerned
	Key    object.Key // zero where no key is concerned
}

// String names the stream: what it watches.
func (id ID) String() string {
	k := id.stream.Key
	return k.Resource + " " + k.Namespace + " " + k.Labels + " " + k.Fields
}

// ID tells streams apart, and the parts of one that narrow listeners see.
type ID struct {
	stream *Stream
	part   intake.Key // zero: all of it
}
