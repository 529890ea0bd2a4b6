package coherence

import "time"

// Outstanding calls yield with every pending write, in no particular order, and with the moment at
// which it was recorded. A write has no version if that is not known. There are as many as Pending
// returns.
func (v *View) Outstanding(yield func(w Write, since time.Time) bool) {
	for key, e := range v.entries {
		w := Write{Key: key, UID: e.uid, Object: e.object, Version: e.atRV}
		if e.open {
			w.Version = ""
		}
		if !yield(w, e.since) {
			return
		}
	}
	for key, q := range v.content.queues {
		for _, e := range q {
			if !yield(Write{Key: key, Object: e.object}, e.since) {
				return
			}
		}
	}
}
