package source

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
)

// Recent is what short watches have told of what has happened up to a version.
type Recent struct {
	ToRV   string // it has to tell all that has happened up to this version
	LastRV string // the newest event up to there, or where the watch began
	Done   bool   // everything is told
}

// Take takes in an event. It returns false if the event makes no sense. A bookmark may repeat an
// old version. An event that is no newer than the one before does not say when its object was
// deleted (rule 10).
func (r *Recent) Take(raw watch.Event) (sound bool) {
	e, err := Check(raw)
	if err != nil || !coherence.Comparable(e.RV) {
		return false
	}
	rv := e.RV
	switch {
	case e.Type == watch.Bookmark:
		r.Done = r.Done || !coherence.Newer(r.ToRV, rv)
		return true
	case !coherence.Newer(rv, r.LastRV):
		return false
	case coherence.Newer(rv, r.ToRV):
		r.Done = true
		return true
	}
	r.LastRV, r.Done = rv, r.Done || rv == r.ToRV
	return true
}
