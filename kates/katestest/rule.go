package katestest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trigger says which requests a fault hits, and then which fault: the methods that return a
// [Rule] put it in force. Before one of them is called nothing happens. Only one goroutine uses a
// trigger.
type Trigger struct {
	faults       *Faults
	match        Match
	now          bool
	after, times int
	probability  float64
}

// After lets the first n matching requests pass. It panics if n is negative.
func (t *Trigger) After(n int) *Trigger {
	notNegative("After", n)
	t.after = n
	return t
}

// Times ends the rule when it has hit n requests. The default is no end. It panics if n is not
// positive.
func (t *Trigger) Times(n int) *Trigger {
	if n <= 0 {
		panic(fmt.Sprintf("katestest: Times(%d): it must be positive", n))
	}
	t.times = n
	return t
}

// Probability hits each request with probability p. The seed, the rule's number and the number of
// matches so far decide which ones. The default is 1. It panics if p is not between 0 and 1.
func (t *Trigger) Probability(p float64) *Trigger {
	if !(p >= 0 && p <= 1) {
		panic(fmt.Sprintf("katestest: Probability(%v): it must be between 0 and 1", p))
	}
	t.probability = p
	return t
}

// Hold keeps requests from being sent until the rule stops.
func (t *Trigger) Hold() *Rule { return t.rule(Rule{kind: hold}) }

// Fail answers requests with err, without sending them, as if the server cannot be reached. A nil
// err is a refused connection (syscall.ECONNREFUSED).
func (t *Trigger) Fail(err error) *Rule {
	if err == nil {
		err = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return t.rule(Rule{kind: fail, err: err})
}

// Status answers requests with a metav1.Status, without sending them. An empty reason is the
// usual one of the code. A positive retryAfter is sent as Retry-After, in whole seconds.
// A client repeats a request that got Retry-After with 429, and a read that got it with 5xx, up to
// ten times; each repetition is a request of its own here. Status panics if the code is not an
// error.
func (t *Trigger) Status(code int, reason metav1.StatusReason, retryAfter time.Duration) *Rule {
	if code < 400 || code > 599 {
		panic(fmt.Sprintf("katestest: Status(%d): it must be between 400 and 599", code))
	}
	return t.rule(Rule{kind: status, code: code, reason: reason, retryAfter: retryAfter})
}

// Lose loses answers after the server has sent them. The client gets io.ErrUnexpectedEOF, and
// cannot know whether a write has happened.
func (t *Trigger) Lose() *Rule { return t.rule(Rule{kind: lose}) }

// HoldAnswer keeps the server's answers from the client until the rule stops.
func (t *Trigger) HoldAnswer() *Rule { return t.rule(Rule{kind: holdAnswer}) }

// Delay brings answers, and everything in them, later by d. Nothing is lost and the order stays.
// When the rule stops, delayed data comes at once. Of several delays the longest counts. It
// panics if d is negative.
func (t *Trigger) Delay(d time.Duration) *Rule {
	notNegative("Delay", d)
	return t.rule(Rule{kind: delay, delay: d})
}

// Stall stops answers after n bytes, without an error, until the rule stops. An answer whose
// connection breaks ends.
func (t *Trigger) Stall(n int64) *Rule { return t.body("Stall", stall, n) }

// Cut breaks answers after n bytes with io.ErrUnexpectedEOF. What is on its way is lost.
func (t *Trigger) Cut(n int64) *Rule { return t.body("Cut", cut, n) }

// Truncate ends answers after n bytes with io.EOF, as if they were complete.
func (t *Trigger) Truncate(n int64) *Rule { return t.body("Truncate", truncate, n) }

// Corrupt replaces everything after the first n bytes of answers by garbage of the same length.
// Garbage is control characters, which are an error anywhere in JSON.
func (t *Trigger) Corrupt(n int64) *Rule { return t.body("Corrupt", corrupt, n) }

// body makes a rule that acts after n bytes.
func (t *Trigger) body(name string, k kind, n int64) *Rule {
	notNegative(name, n)
	return t.rule(Rule{kind: k, bytes: n})
}

// notNegative panics if the argument of a method is negative.
func notNegative[N int | int64 | time.Duration](method string, n N) {
	if n < 0 {
		panic(fmt.Sprintf("katestest: %s(%v): it cannot be negative", method, n))
	}
}

type kind int

const (
	hold kind = iota
	fail
	status
	lose
	holdAnswer
	// The kinds from here on act on bodies.
	delay
	stall
	cut
	truncate
	corrupt
)

// Rule is a fault in force. It is safe for concurrent use.
type Rule struct {
	// Set once:
	faults     *Faults
	when       Trigger
	kind       kind
	number     uint64
	err        error
	code       int
	reason     metav1.StatusReason
	retryAfter time.Duration
	delay      time.Duration
	bytes      int64

	// Guarded by faults.mu:
	seen, hits int
	stopped    bool
}

// Stop ends the rule: it hits no more requests, and what it holds, stalls or delays continues.
// What is broken stays broken. It may be called more than once.
func (r *Rule) Stop() {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.stop()
}

// Hits returns how many requests, or open answers, the rule has hit so far.
func (r *Rule) Hits() int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return r.hits
}

// rule puts a rule in force.
func (t *Trigger) rule(rule Rule) *Rule {
	f, r := t.faults, &rule
	r.faults, r.when = f, *t
	open := f.candidates(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	r.number = f.made
	if !t.now {
		f.rules = append(f.rules, r)
		return r
	}
	for _, b := range open {
		if r.kind >= delay && !b.closed && r.hit() {
			b.applied = append(b.applied, applied{rule: r, at: b.position + r.bytes})
		}
	}
	f.wake()
	return r
}

// candidates returns the open answers that a trigger selects. The user's function is called
// without a lock.
func (f *Faults) candidates(t *Trigger) (open []*body) {
	if !t.now {
		return nil
	}
	f.mu.Lock()
	bodies := slices.Clone(f.bodies)
	requests := make([]Request, len(bodies))
	for i, b := range bodies {
		requests[i] = *b.request
	}
	f.mu.Unlock()
	for i, b := range bodies {
		if t.match.matches(requests[i]) {
			open = append(open, b)
		}
	}
	return open
}

// hit counts a matching request and decides whether the rule hits it. Called with faults.mu held.
func (r *Rule) hit() bool {
	r.seen++
	if r.stopped || r.seen <= r.when.after || (r.when.times > 0 && r.hits >= r.when.times) {
		return false
	}
	if r.when.probability < 1 && r.random(uint64(r.seen)).Float64() >= r.when.probability {
		return false
	}
	r.hits++
	return true
}

// random depends only on the seed, the rule and n, so that other requests do not change it.
func (r *Rule) random(n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.faults.seed+r.number*0x9e3779b97f4a7c15, n))
}

// stop is Stop with faults.mu held.
func (r *Rule) stop() {
	if r.stopped {
		return
	}
	r.stopped = true
	r.faults.rules = slices.DeleteFunc(r.faults.rules, func(other *Rule) bool { return other == r })
	r.faults.wake()
}
