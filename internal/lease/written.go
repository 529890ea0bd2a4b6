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
	known record   // the last write that succeeded
	maybe []record // later ones, whose answers are missing
}

// maxMaybe bounds the memory of writes that fail. What is forgotten is another's at worst: a
// candidate waits then until the Lease has expired.
const maxMaybe = 100

// sends notes a write that is about to be sent.
func (w *Written) sends(r record) {
	if len(w.maybe) == maxMaybe {
		w.maybe = slices.Delete(w.maybe, 0, 1)
	}
	w.maybe = append(w.maybe, r)
}

// stored notes that a write has succeeded. Writes before it began with an older version of the
// Lease, and cannot be stored any more.
func (w *Written) stored(r record) { w.known, w.maybe = r, nil }

// has reports whether a Lease is as it was written here.
func (w *Written) has(r record) bool {
	return r.same(w.known) || slices.ContainsFunc(w.maybe, r.same)
}

// same reports whether two records are of one write. The server keeps microseconds.
func (r record) same(other record) bool {
	at := time.Time.UnixMicro
	return r.holder == other.holder && r.transitions == other.transitions &&
		at(r.acquired) == at(other.acquired) && at(r.renewed) == at(other.renewed)
}
