package accumulator

// point names a moment at which tests let other things happen: between two steps that are each under a lock, but
// not both under one. Whatever happens there may happen in production, too.
type point string

const (
	atUpdate   point = "update"   // an Update has its turn, and does not know yet whether all is complete
	atComplete point = "complete" // all is complete, and is to be taken
	atTake     point = "take"     // what is new of a stream is to be taken next
	atMerge    point = "merge"    // several streams have been taken from, and are to be made one
	atLook     point = "look"     // a stream is to be asked about one key
	atNames    point = "names"    // the names in objects have been read, and the objects may be held back for them
	atNamed    point = "named"    // of what is named it is to be found out what has changed
	atTaken    point = "taken"    // all has been taken, and is to be shown
	atList     point = "list"     // a list is to be asked for
	atListed   point = "listed"   // a list is whole, and is to take the store's place
	atWatch    point = "watch"    // a watch is to be opened
	atCommit   point = "commit"   // a stream is to take an own write in
	atSettle   point = "settle"   // the server has said what an own write has come to, and the stream is to take it in
	atLand     point = "land"     // all streams have an own write
)

// moment is a point that has been reached.
type moment struct {
	point
	stream *stream // nil where there is none
	key    Key     // zero where there is none
}

// reach lets tests do something at a moment. No lock is held there. In production it is a comparison with nil.
func (s *Streams) reach(p point, st *stream, key Key) {
	if s.config.points != nil {
		s.config.points(moment{p, st, key})
	}
}

func (s *stream) reach(p point, key Key) { s.streams.reach(p, s, key) }

func (s *subscription) reach(p point, key Key) { s.stream.reach(p, key) }
