package stream

import (
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/watchdog"
)

// Step is what a stream does without a request: it takes in an event, or an object of a list.
type Step struct {
	// Stream is its resource, and its namespace if it has one.
	Stream string
	// For is how long the step that is under way has been so since somebody first looked; 0: none
	// is. Doing is the function of the user that it runs.
	For   time.Duration
	Doing string
}

// Steps are those of the streams, in order.
func (s *Set) Steps() (all []Step) {
	now := time.Now()
	for _, st := range s.all() {
		step := Step{Stream: st.Key.Resource}
		if st.Key.Namespace != "" {
			step.Stream += " in " + st.Key.Namespace
		}
		step.For, step.Doing = st.Step.Look(now)
		all = append(all, step)
	}
	slices.SortFunc(all, func(a, b Step) int { return strings.Compare(a.Stream, b.Stream) })
	return all
}

// Working are the own writes that streams take in now.
func (s *Set) Working() []watchdog.Running { return s.working.Running() }
