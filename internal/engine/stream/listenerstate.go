package stream

import "github.com/kates-go/kates/internal/engine/audience"

// ListenerState is what a listener can know of its stream at one moment.
type ListenerState struct {
	Phase audience.Phase
	// Health is how the stream's requests fare.
	Health State
	// Gone: there is certainly no such resource, or no such namespace.
	Gone bool
	// Misplaced: the last answer was one that a server gives if the kind is served in another way.
	Misplaced bool
	// First says whether the server refuses the first list. It counts while there is none.
	First Refusal
	// News: there is something worth a signal.
	News bool
	// PositionRV is the version up to which the watch has delivered everything.
	PositionRV string
}

// Refusal is how certain it is that there is no first list.
type Refusal int

const (
	// NotRefused: it may still come.
	NotRefused Refusal = iota
	// Refused: the server keeps refusing it.
	Refused
	// RefusedForLong: the server has refused it for half a minute or so, or the resource is gone.
	RefusedForLong
)

// Ready reports whether the whole first list is in.
func (s ListenerState) Ready() bool { return s.Phase >= audience.Relisting }

// Absent reports whether there is certainly nothing: the resource is gone, or could never be read.
func (s ListenerState) Absent() bool { return s.Gone || s.First >= Refused }

// Settled reports whether the stream does not hold up a first snapshot.
func (s ListenerState) Settled(optional bool) bool {
	return s.Ready() || optional && s.First >= Refused
}
