package stream

import (
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// ownWrites is what a stream knows of its client's writes beyond the store. The stream's lock
// guards it.
type ownWrites struct {
	// flights are own writes that are under way.
	flights map[object.Key]*flight
	// unsettled are own writes that the server could not be asked about, with the version that the
	// watch has to reach to show them.
	unsettled map[object.Key]bound
	// expiry fires when an own write has been shown for long enough without an event that
	// confirms it. expired: it has fired; the next list ends such writes.
	expiry  *time.Timer
	expired bool
	// atLeastRV is the version that the next list must have, if own writes were given up.
	atLeastRV string
	// undated is the number of the latest own deletion at an unknown version, see
	// Shared.deletions. It counts while such a deletion is pending, or was given up.
	undated int64
}

// flight is what became of a key while an own write of it was under way.
type flight struct {
	writes int
	// held: its events have not signalled to listeners that ask for quiet own writes. Whether they
	// were the write's own is known when the answer is.
	held   bool
	before object.Object // what was shown before the first of them
}

// hold holds back a signal.
func (f *flight) hold(before object.Object) {
	if !f.held {
		f.held, f.before = true, before
	}
}

// forgetSettled drops what the watch has settled, and returns how many are left.
func (w *ownWrites) forgetSettled(positionRV string) int {
	for key, until := range w.unsettled {
		if until.reached(positionRV) {
			delete(w.unsettled, key)
		}
	}
	return len(w.unsettled)
}

// bound is a version that the watch has to reach, or to pass.
type bound struct {
	rv     string
	beyond bool
}

func (b bound) reached(positionRV string) bool {
	if b.beyond {
		return coherence.Newer(positionRV, b.rv)
	}
	return !coherence.Newer(b.rv, positionRV)
}
