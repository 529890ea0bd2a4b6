package katestest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Faults is a transport that fails as networks, proxies and API servers do, whenever a test wants
// it to:
//
//	faults := katestest.NewFaults(t, 0)
//	config.Wrap(faults.Wrap) // a *rest.Config, before a client is made of it
//
//	// every third list of config maps or so is answered by 503
//	faults.On(katestest.Match{Verb: "list", Resource: "configmaps"}).Probability(0.3).Status(503, "", 0)
//	// the second watch stops in the middle of an object
//	faults.On(katestest.Match{Verb: "watch"}).After(1).Times(1).Cut(150)
//	// the watches that are open break now
//	faults.Now(katestest.Match{Verb: "watch"}).Cut(0)
//
// [Faults.On] is for future requests, [Faults.Now] for answers that are open. Both return a
// [Trigger], whose methods make the faults. Without faults everything passes unchanged. All
// requests are recorded: [Faults.Requests]. For what a transport cannot do see [Network].
//
// [NewFaults] makes one. It is safe for concurrent use. Each open answer has one goroutine, which
// ends when the answer's body is closed. Waiting uses the clock of package time, so it works
// inside a synctest bubble.
type Faults struct {
	seed uint64

	watched
	made   uint64  // how many rules were made: their numbers
	rules  []*Rule // the rules of On that are not stopped
	log    []*Request
	bodies []*body // open answers, the oldest first
}

// seedVariable is the environment variable that sets the seed, to repeat a run.
const seedVariable = "KATESTEST_SEED"

// NewFaults returns a transport without faults. The seed decides what [Trigger.Probability]
// leaves to chance, and what garbage looks like: with the same seed the same requests in the same
// order fail alike. A zero seed means the value of the environment variable KATESTEST_SEED, or a
// random one without it. A test that fails prints the seed. Outside of tests t is nil.
func NewFaults(t testing.TB, seed uint64) *Faults {
	if seed == 0 {
		seed = rand.Uint64()
		if s, set := os.LookupEnv(seedVariable); set {
			var err error
			if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
				panic(fmt.Sprintf("katestest: %s: %v", seedVariable, err))
			}
		}
	}
	f := &Faults{seed: seed, watched: watched{changed: make(chan struct{})}}
	if t != nil {
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the faults were drawn with seed %d: %s=%d draws them again", seed, seedVariable, seed)
			}
		})
	}
	return f
}

// Seed returns the seed.
func (f *Faults) Seed() uint64 { return f.seed }

// Wrap puts the faults in front of a transport. It is made for rest.Config's Wrap. It may be used
// for several transports, which then share rules and records.
func (f *Faults) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{f, next} }

// On returns a trigger for future requests that match. If several rules apply to a request, each
// does its part, in the order in which they were made; only one can answer.
func (f *Faults) On(m Match) *Trigger {
	return &Trigger{faults: f, match: m, probability: 1}
}

// Now returns a trigger for the open answers that match, the oldest first: watches, and lists
// that are being read. Bytes are counted from the position that the client has reached. A fault
// that acts before there is an answer does nothing here. A request whose answer is not open yet is
// not hit: wait for Open before. A snapshot may be complete before its watches are open.
func (f *Faults) Now(m Match) *Trigger {
	return &Trigger{faults: f, match: m, probability: 1, now: true}
}

// Heal stops all rules.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range slices.Clone(f.rules) {
		r.stop()
	}
	for _, b := range f.bodies {
		for _, a := range b.applied {
			a.rule.stop()
		}
	}
}

// Requests returns copies of the records of all matching requests so far, in the order in which
// they were made.
func (f *Faults) Requests(m Match) []Request {
	f.mu.Lock()
	all := make([]Request, 0, len(f.log))
	for _, r := range f.log {
		all = append(all, *r)
	}
	f.mu.Unlock()
	return m.among(all)
}

// Open returns the matching requests whose answers are open: the client has the answer, and has
// not closed it.
func (f *Faults) Open(m Match) []Request {
	f.mu.Lock()
	var open []Request
	for _, b := range f.bodies {
		open = append(open, *b.request)
	}
	f.mu.Unlock()
	return m.among(open)
}

// Wait returns when the condition is true. It calls the condition at once, and whenever a request
// is made, held, answered, read from or closed. The condition may call the Faults. If ctx ends
// first, Wait returns its cause.
//
//	err := faults.Wait(ctx, func() bool { return len(faults.Requests(lists)) >= 3 })
func (f *Faults) Wait(ctx context.Context, condition func() bool) error {
	return f.wait(ctx, "requests", condition)
}
