package audience

import "github.com/kates-go/kates/internal/object"

// Change is a key and its object now: nil if there is none.
type Change struct {
	Key    object.Key
	Object object.Object
}

// Batch is what has changed for a listener since its last batch.
type Batch struct {
	Changes []Change
	Extent  Extent
	// Signals are the keys whose change is worth a signal, for a listener that asks for them. With
	// Everything, all are.
	Signals map[object.Key]bool
	// NewHistory: versions do not compare with those that the listener knows.
	NewHistory bool
}

// Extent says how much a batch has.
type Extent int

const (
	// Unknown: the stream has nothing that may be shown yet.
	Unknown Extent = iota
	// Lost: what was shown before may stay, and there is nothing new until the stream has listed
	// again. The listener has had a batch before.
	Lost
	// Some: the changes since the last batch.
	Some
	// Everything: all objects. Others that the listener knows are gone.
	Everything
)

// Phase says what a listener can take.
type Phase int

const (
	// FirstList: the first list is not in.
	FirstList Phase = iota
	// Dropped: the first list was in, and the stream has given it up before the listener took it.
	// It lists again.
	Dropped
	// Relisting: the listener has had a batch. The stream has nothing new until it has listed
	// again.
	Relisting
	// Following: the listener can take a batch.
	Following
)
