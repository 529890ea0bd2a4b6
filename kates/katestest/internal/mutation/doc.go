// Package mutation finds out who writes to objects that a client hands out, and that everybody
// shares. Package katestest has it for tests.
//
// Start at [Detector]. [Detector.Watching] makes the witness of one watch. It is told of each
// value before anybody gets it (Shown), of each function that is called with an object (Lent), and
// of each snapshot, turn and answer (Delivered). [Detector.End] returns what was found.
//
//	Shown ──▶ exhibit: the value, and its JSON then ──▶ look: is its JSON the same? ──▶ finding
//	                                                      ▲
//	          Lent: before and after a function ──────────┤
//	          Delivered: a part of what the watch shows ──┤
//	          End: all                                ────┘
//
// # What is compared
//
// A value is compared with the JSON that it had when it was shown. So what JSON does not have is
// not seen: unexported fields, which some types fill when they are read. Slices and maps of
// snapshots are shared, too. They are compared with a shallow copy: an element that was replaced,
// or moved, is a write.
//
// # When
//
// A function of the user is looked after at once: the objects that it got are compared when it has
// returned. Each snapshot compares the objects that it shows, so that the first one that shows the
// damage is known. To bound the time, a delivery looks at [Limits].Look bytes of JSON, beginning
// with what was not looked at for longest. With more objects than that, a finding says between
// which two snapshots the write was.
//
// # How much is held
//
// Each version that was shown is held, with its JSON, up to [Limits].Held bytes of JSON. Then
// versions that no watch shows any more are let go, the oldest first, and after that those that
// are shown. A value is compared for the last time when it is let go.
//
// # Races
//
// A detector only reads. It reads in the calls that are under way anyway, and at the end: as any
// other reader of a shared object would. So if the race detector reports one of these reads, the
// other side is a write to a shared object. Memory that belongs to the caller, such as the struct
// of a snapshot, is not read.
package mutation
