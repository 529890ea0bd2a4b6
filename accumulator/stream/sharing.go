package stream

// Sharing is a [Source] of untyped objects that can share memory.
type Sharing interface {
	Source
	// Shared returns a source of the same objects, in which equal parts of several objects are the
	// same maps and slices. Nobody may write to them.
	Shared() Source
}

// share lets the untyped objects of a stream share memory, unless a transform may write to them.
func (s *shape) share() {
	if source, ok := s.source.(Sharing); ok && s.transform == nil {
		s.source = source.Shared()
	}
}
