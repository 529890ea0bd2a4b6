// Package kit is what package katestest asks of package kates beyond its public names. Start at
// [WatchOption].
package kit

import "github.com/kates-go/kates/internal/object"

// WatchOption is an option of watches that only the kit has. Package kates takes it wherever it
// takes a kates.WatchOption, and asks it in place of the methods that this type has.
type WatchOption interface {
	// OnShown returns a function that is called once for each value that enters a snapshot, or
	// that a lister hands out.
	OnShown() func(query string, source object.Object, value any)
}
