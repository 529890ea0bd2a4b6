package controller

import "time"

// Result is what a reconcile that has returned no error wants next. The zero value is [Done].
type Result struct {
	after time.Duration
	again bool
}

// Done: there is nothing more to do until something changes.
var Done = Result{}

// RequeueAfter wants the key reconciled again after d (zero or less: at once). Whatever has the key reconciled earlier, a change
// or a trigger, replaces it; a key that is forgotten loses it. Returned with an error, it says when the next try is to be, in
// place of the backoff, and nothing comes earlier; with a permanent one it says nothing.
func RequeueAfter(d time.Duration) Result { return Result{after: max(d, 0), again: true} }

// Info, as a field of a reconciler's struct, says what its turn is about. A reconciler whose struct has one is told when a root has
// departed; see the package's documentation.
type Info struct {
	// Key of the root: "namespace/name", or its name.
	Key string
	// Attempt is 1, or more after reconciles of the key that ended with an error, in a row; permanent ones count.
	Attempt int
	// Departed is empty while the root is there. Else the root is the last one that was known, and this is how it went.
	Departed Departure
}

// Departure is how a root came to be not there any more.
type Departure string

// Departures.
const (
	// Deleted: it does not exist any more; where there is one of that name, it is another one.
	Deleted Departure = "deleted"
	// Left: it exists, and the query does not select it any more.
	Left Departure = "left"
	// Unknown: it was deleted, or has left: the server does not let this client get it.
	Unknown Departure = "unknown"
)
