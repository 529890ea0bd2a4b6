package intake

import "github.com/kates-go/kates/internal/object"

// Part is how much of an object is wanted.
type Part int

const (
	// All of it, as the server sends it.
	All Part = iota
	// Known is all fields that the Go type of its kind has, or more. The managedFields may be
	// left out.
	Known
	// Meta is its kind and its metadata. The managedFields may be left out.
	Meta
	// Version is its UID and its resource version. No transform may change them.
	Version
)

// HoldsPart reports whether the stream has at least that part of its objects.
func (s *Intake) HoldsPart(part Part) bool {
	switch part {
	case Version:
		return true
	case Meta:
		return s.holdsAll()
	case Known:
		return s.holdsAll() && s.Key.Form != object.Metadata
	}
	return s.holdsAll() && s.Key.Form == object.Whole
}
