package streamset

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/engine/stream"
)

// Inspect returns what the streams have and have done, by resource, namespace and selectors.
func (s *Set) Inspect() []stream.Inspection {
	var all []stream.Inspection
	for _, st := range s.all() {
		all = append(all, st.Inspect())
	}
	slices.SortFunc(all, func(a, b stream.Inspection) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Labels, b.Labels), cmp.Compare(a.Fields, b.Fields), cmp.Compare(a.AnyOf, b.AnyOf), cmp.Compare(a.ID, b.ID))
	})
	return all
}

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

// Locked reports whether somebody holds a lock of the set or of a stream.
func (s *Set) Locked() bool {
	if !s.mu.TryLock() {
		return true
	}
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if st.Locked() {
			return true
		}
	}
	return false
}

// Taken is how many objects the set's streams count for [stream.Config].ObjectsMax.
func (s *Set) Taken() int { return s.shared.Room.Taken() }

// Stored is how many objects their stores have.
func (s *Set) Stored() (n int) {
	for _, st := range s.all() {
		n += st.Stored()
	}
	return n
}

// Reach lets tests do something at a point. No lock is held there. In production it is a
// comparison with nil.
func (s *Set) Reach(p stream.Point) {
	if s.shared.Points != nil {
		lockorder.CallOut("Config.Points")
		s.shared.Points(stream.Moment{Point: p})
	}
}
