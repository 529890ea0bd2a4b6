package stream

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

// ListenerState is what a listener can know of its stream at one moment.
type ListenerState struct {
	Phase Phase
	// Health is how the stream's requests fare.
	Health State
	// Gone: there is certainly no such resource, or no such namespace.
	Gone bool
	// Misplaced: the last answer was one that a server gives if the kind is served in another way.
	Misplaced bool
	// Refused: there is certainly no first list. The server keeps refusing it, or the resource is
	// gone.
	Refused bool
	// Lasting: it has been so for half a minute or so, or the resource is gone.
	Lasting bool
	// News: there is something worth a signal.
	News bool
	// PositionRV is the version up to which the watch has delivered everything.
	PositionRV string
}

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

// Ready reports whether the whole first list is in.
func (s ListenerState) Ready() bool { return s.Phase >= Relisting }

// Absent reports whether there is certainly nothing: the resource is gone, or could never be read.
func (s ListenerState) Absent() bool { return s.Gone || s.Refused }

// Settled reports whether the stream does not hold up a first snapshot.
func (s ListenerState) Settled(optional bool) bool { return s.Ready() || optional && s.Refused }
