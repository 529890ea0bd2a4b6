package katestest

import (
	"testing"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest/internal/mutation"
)

// DetectMutations returns an option for a client (or for its With). Objects that a client hands
// out are shared, so a program that writes to one changes what others see. With the option, each
// such write fails the test when it ends. The clients of [New] and [NewClient] have it; this is
// for others:
//
//	client, err := kates.NewClientFromRESTConfig(config, katestest.DetectMutations(t))
//
// The error names the object, the fields, and the first look that found the write:
//
//	somebody wrote to a shared object: Service prod/web of query "Services": spec.ports[0].port:
//	first seen in snapshot 7 of main.Snapshot (15:04:05.000); unchanged in snapshot 6 of …
//
// The client looks when it hands out something, whatever that is: snapshots, invalid objects, the
// turns of [kates.RunEach] and of controllers (when they begin, and when they end), and what a
// [kates.Lookup], a [kates.Lister] or a fleet returns. Functions that get objects (predicates,
// Key, Signal and Refs of queries) are looked after each time. A Transform has its object to
// itself, and may write to it. The slices and maps of a snapshot's fields are shared, too: to sort
// one in place is such a write. The struct itself belongs to the program, and so do deltas. In a
// fleet, the clients of the clusters have the option.
//
// Objects that are decoded straight from the wire share equal maps with each other, so one write
// may be found in several objects.
//
// A look compares JSON. A snapshot, or a turn, looks at 128 KiB of it, which takes a millisecond
// or two: where there is more to see, each object is looked at every few snapshots, and the error
// says between which two the write was. At the end of the test all are looked at. Up to 32 MiB of
// JSON are held, and the objects with it. Past that, the detector lets go of what no watch shows
// any more, and then of the oldest. It looks at them for the last time then.
//
// A detector reads what it looks at, in calls that are under way anyway. If the race detector
// reports that, the other goroutine writes to a shared object.
func DetectMutations(t testing.TB) kates.WatchOption {
	t.Helper()
	d := mutation.New(mutation.Default)
	t.Cleanup(func() {
		t.Helper()
		for _, m := range d.End() {
			t.Error(m)
		}
	})
	return detecting{detector: d}
}

// detecting is the option of a detector.
type detecting struct {
	kates.WatchOption // nil, and never called: it makes this a kates.WatchOption
	detector          *mutation.Detector
}

var _ collect.WitnessOption = detecting{}

// Witness implements [collect.WitnessOption].
func (d detecting) Witness(watch string) collect.Witness { return d.detector.Watching(watch) }
