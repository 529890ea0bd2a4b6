package controller

import (
	"reflect"
	"time"

	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/kates"
)

// Package kates knows by this which field of a struct is no query.
func init() { doors.Info = reflect.TypeFor[Info]() }

// Result says what a reconcile without an error wants next. The zero value is [Done].
type Result struct {
	after time.Duration
	again bool
}

// Done: there is nothing more to do until something changes.
var Done = Result{}

// RequeueAfter asks for one more reconcile of the key after d (zero or less: at once, unlike
// controller-runtime, where a RequeueAfter of 0 is [Done]). An earlier
// reconcile, by a change or a trigger, replaces it; a key that is forgotten loses it. Returned
// with an error, it sets the time of the next try in place of the backoff, and nothing comes
// earlier. With a permanent error it has no effect.
func RequeueAfter(d time.Duration) Result { return Result{after: max(d, 0), again: true} }

// Info, as a field of a reconciler's struct, says what its turn is about. Only a reconciler whose
// struct has such a field is called for a root that has departed; see the package's documentation.
type Info struct {
	// Key of the root: "namespace/name", or its name.
	Key string
	// Attempt is 1, or more after reconciles of the key that ended with an error, in a row.
	// Permanent errors count.
	Attempt int
	// Root is the root as an object, shared and read-only: what [kates.OwnedSet] and the client's
	// methods take if the root's field is a plain struct. For an API type it is the field's value.
	Root kates.Object
	// Departure is empty while the root exists. Otherwise the root is the last one that was known,
	// and Departure says why it is not there any more.
	Departure Departure
}

// Departure says why a root is not there any more.
type Departure string

// Departures.
const (
	// Deleted: it does not exist any more. An object of that name is another one.
	Deleted Departure = "deleted"
	// Left: it exists, and the query does not select it any more.
	Left Departure = "left"
	// Unknown: deleted or left. The server does not let this client get the object.
	Unknown Departure = "unknown"
)
