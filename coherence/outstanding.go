package coherence

import "time"

// Outstanding is an own write that the stream has not shown yet.
type Outstanding struct {
	Key Key
	// Object as the write made it, nil if it is gone or not in the stream's query any more.
	Object Object
	// Version of the write, "" if it is not known.
	Version string
	// Since is when the write was recorded.
	Since time.Time
}

// Outstanding calls yield with every pending write, in no particular order. There are as many as
// Pending returns.
func (v *View) Outstanding(yield func(Outstanding) bool) {
	for key, e := range v.entries {
		o := Outstanding{Key: key, Object: e.object, Version: e.atRV, Since: e.since}
		if e.open {
			o.Version = ""
		}
		if !yield(o) {
			return
		}
	}
	for key, q := range v.content.queues {
		for _, e := range q {
			if !yield(Outstanding{Key: key, Object: e.object, Since: e.since}) {
				return
			}
		}
	}
}
