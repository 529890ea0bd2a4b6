package lease

import (
	"slices"
	"time"
)

// Written is what was written into a Lease under one identity. It tells whether a Lease that has
// the identity is this process's own. A copy of the process has the same identity, and so have two
// clients that were given one, and know one server by two names.
//
// A renewal has a time that nobody else writes at the same microsecond. A write whose answer is
// missing may have been stored, so it counts. The zero value is ready. It belongs to one candidate
// or shard at a time.
type Written struct {
	known Stamp   // of the last write that succeeded
	maybe []Stamp // of later ones, whose answers are missing
}

// Stamp identifies a write of a Lease. The server keeps microseconds.
type Stamp struct {
	acquired, renewed int64
	transitions       int32
}

// StampOf returns the stamp of a write that says when it has renewed the Lease, and no term.
func StampOf(renewed time.Time) Stamp { return Stamp{renewed: renewed.UnixMicro()} }

func (r record) stamp() Stamp {
	return Stamp{r.acquired.UnixMicro(), r.renewed.UnixMicro(), r.transitions}
}

// maxMaybe bounds the memory of writes that fail. What is forgotten is another's at worst: a
// candidate waits then until the Lease has expired.
const maxMaybe = 100

// Sends notes a write that is about to be sent.
func (w *Written) Sends(s Stamp) {
	if len(w.maybe) == maxMaybe {
		w.maybe = slices.Delete(w.maybe, 0, 1)
	}
	w.maybe = append(w.maybe, s)
}

// Stored notes that a write has succeeded. Writes before it began with an older version of the
// Lease, and cannot be stored any more.
func (w *Written) Stored(s Stamp) { w.known, w.maybe = s, nil }

// Has reports whether a Lease is as it was written here.
func (w *Written) Has(s Stamp) bool { return s == w.known || slices.Contains(w.maybe, s) }
