package sim

import (
	"time"

	"pgregory.net/rapid"
)

// Step is one action of a script. The meaning of its parameters depends on the action.
type Step struct{ Op, A, B, C int }

// Script is everything that chance decides. It is drawn before the bubble starts.
type Script struct {
	Stream     bool
	Page       int
	PendingMax int
	Grace      time.Duration
	First      []int // the queries of the first reader
	Share      bool  // a query may be served from a wider stream
	LastStates bool  // some deletions are delivered with the object's last version
	Steps      []Step
}

// DrawScript draws a script.
func DrawScript(t *rapid.T) Script {
	small := rapid.IntRange(0, 59)
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step {
		return Step{rapid.IntRange(0, 109).Draw(t, "op"), small.Draw(t, "a"), small.Draw(t, "b"), small.Draw(t, "c")}
	}), 20, 300)
	return Script{
		Stream:     rapid.Bool().Draw(t, "stream"),
		Page:       rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "page"),
		PendingMax: rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "pending"),
		Grace:      rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "grace"),
		First:      rapid.SliceOfN(small, 2, 3).Draw(t, "first"),
		Share:      rapid.Bool().Draw(t, "share"),
		LastStates: rapid.Bool().Draw(t, "last states"),
		Steps:      steps.Draw(t, "steps"),
	}
}

// ModelPauses are how long a model lets time pass.
var ModelPauses = []time.Duration{0, 10 * time.Millisecond, time.Second, 20 * time.Second, 3 * time.Minute}
