// Package rounds runs model tests, which are measured in steps, not in cases. [Check] repeats
// rapid.Check until the model has taken a number of steps. A step is one thing that happened to
// the model: a write, an event, a reading. An action that had nothing to do is no step.
//
// A package whose tests import it has the flag
//
//	-steps N    how many steps each model test takes at least (5,000; 2,000 under the race
//	            detector, which makes them five times as slow); make model takes 100,000
//	-series N   the seeds of the rounds (1); 0: others each time
//
// The same series draws the same cases, so a run that fails says something about the change that
// it tests, and not about chance. Look for what no series has found with -series 0.
//
// Reproduce a failure as rapid says, with -rapid.seed or -rapid.failfile. With one of these
// flags, or with -rapid.checks, there is one round, with any number of steps.
package rounds

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	wanted = flag.Int("steps", usual, "how many steps each model test takes at least")
	series = flag.Uint64("series", 1, "the seeds of the rounds of a model test; 0: others each time")
)

// Check runs the property on random input, in rounds of -rapid.checks cases, until it has called
// step as often as -steps says. It logs the number of steps. It fails the test if the time that
// go test allows is too short. The property runs on one goroutine at a time.
func Check(t *testing.T, property func(t *rapid.T, step func())) {
	t.Helper()
	taken := 0
	round := func(rt *rapid.T) { property(rt, func() { taken++ }) }
	start := time.Now()
	if chosen() {
		rapid.Check(t, round)
		t.Logf("%d steps in one round, as chosen by a flag of rapid (%v)", taken, time.Since(start).Round(time.Millisecond))
		return
	}
	rounds := 0
	for taken < *wanted {
		before, began := taken, time.Now()
		seeded(uint64(rounds), func() { rapid.Check(t, round) })
		rounds++
		if taken == before {
			t.Fatalf("round %d took no step", rounds)
		}
		if end, ok := t.Deadline(); ok && taken < *wanted && time.Until(end) < margin+2*time.Since(began) {
			t.Fatalf("%d steps in %v, and no time for the rest of %d: raise -timeout or lower -steps",
				taken, time.Since(start).Round(time.Second), *wanted)
		}
	}
	t.Logf("%d steps in %d rounds (%v)", taken, rounds, time.Since(start).Round(time.Millisecond))
}

// seeded runs a round with its seed in the series.
func seeded(round uint64, do func()) {
	if *series == 0 {
		do() // rapid draws a seed
		return
	}
	seed := flag.Lookup("rapid.seed").Value
	before := seed.String()
	defer func() { _ = seed.Set(before) }()
	_ = seed.Set(strconv.FormatUint(rand.New(rand.NewPCG(*series, round)).Uint64()|1, 10)) // never 0
	do()
}

// margin is the time that is left when a test gives up. Later than that, rapid would cut its
// rounds short.
const margin = 5 * time.Second

// chosen reports whether somebody has asked for certain cases.
func chosen() (yes bool) {
	if flag.Lookup("rapid.seed").Value.String() != "0" || flag.Lookup("rapid.failfile").Value.String() != "" {
		return true // also by rapid's environment variables
	}
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == "rapid.checks" })
	return yes
}
