package accumulator

// point names a moment at which tests let other things happen: between two steps that are each under a lock, but
// not both under one. Whatever happens there may happen in production, too.
type point string

const (
	atUpdate point = "update" // an Update has its turn, and does not know yet whether all is complete
	atTake   point = "take"   // what is new of a stream is to be taken next
	atMerge  point = "merge"  // several streams have been taken from, and are to be made one
	atLook   point = "look"   // a stream is to be asked about one key
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

func (s *subscription) reach(p point, key Key) { s.stream.streams.reach(p, s.stream, key) }
