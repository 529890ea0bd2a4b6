package source

// Sharer is a [Source] whose objects can share memory as soon as they are decoded.
type Sharer interface {
	Source
	// Shared returns a source of the same objects, in which equal parts of several objects are the
	// same memory. Nobody may write to them, not even a [object.Transform].
	Shared() Source
}

// Sharing is a [Source] of untyped objects that can share memory.
type Sharing interface {
	Sharer
	// Share returns content that equals an untyped object's, in which equal parts of those that it
	// has returned are the same. It writes to nothing. Nobody writes to the content or to its
	// parts from now on.
	Share(content map[string]any) map[string]any
}
