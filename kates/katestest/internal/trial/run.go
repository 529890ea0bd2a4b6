package trial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/tested"
)

// Program is a program under test. It runs until ctx ends, or until it has done its work.
type Program = func(ctx context.Context, config *rest.Config) error

// Options of trials. All are set.
type Options struct {
	Classify   func(*http.Request) Call
	Ignored    func(Call) bool // it does not count
	Uncompared func(Call) bool // the object is no part of the end state; the call has no verb
	// Idle says why a client of the program has nothing to do, nil if its work is done.
	Idle   func(client any) error
	Calls  int           // how many calls a program may make until it is settled
	Quiet  time.Duration // it is settled when it has made no call for so long
	Within time.Duration // it has to settle in that time
}

// Run is a program that runs.
type Run struct {
	rec   *recorder
	label string
	done  chan struct{}
	err   error // of the program; after done

	settled int // how many calls there were when it had settled
}

// labelName labels the goroutines of a program, for the goroutine profile.
const labelName = "katestest-program"

var runs atomic.Int64

var errGoexit = errors.New("it has ended its goroutine (runtime.Goexit, as FailNow of a test does)")

// Start starts a program. It ends with ctx, or with Stop, which must be called.
func Start(ctx context.Context, config *rest.Config, program Program, o Options, crash Crash) *Run {
	r := &Run{
		rec: newRecorder(ctx, o, tested.InBubble(), crash), err: errGoexit,
		label: fmt.Sprintf("%d", runs.Add(1)), done: make(chan struct{}),
	}
	of := r.rec.config(config)
	go pprof.Do(r.rec.ctx, pprof.Labels(labelName, r.label), func(ctx context.Context) {
		defer close(r.done)
		r.err = program(ctx, of)
	})
	return r
}

// Ending is how long a program may take to end. One that works needs much less.
const Ending = time.Minute

// Stop ends the program, and waits until it and all of its goroutines have ended. Until then it
// may send requests, unless it has crashed. Stop may be called again. The error says what goes on.
// The program's own error is not its.
func (r *Run) Stop() error {
	r.rec.cancel()
	patience := Ending
	if r.rec.crashedAt() != nil {
		patience = time.Second // then its connections break
	}
	ended := r.endsWithin(patience)
	r.rec.cut()
	if !ended && !r.endsWithin(Ending) {
		return fmt.Errorf("the program does not end: its context was cancelled %s ago. Its goroutines:\n%s", Ending, r.goroutines())
	}
	r.rec.mu.Lock()
	r.rec.ended = true
	r.rec.mu.Unlock()
	limit := time.NewTimer(Ending)
	defer limit.Stop()
	return r.nothingLeft(limit.C)
}

func (r *Run) endsWithin(d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-r.done:
		return true
	case <-limit.C:
		return false
	}
}

// nothingLeft waits until no goroutine of the program is left.
func (r *Run) nothingLeft(limit <-chan time.Time) error {
	for pause := time.Millisecond; ; pause *= 2 {
		if r.rec.bubble {
			synctest.Wait()
		}
		left := r.goroutines()
		if left == "" {
			return nil
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			continue
		case <-limit:
			again.Stop()
		}
		r.rec.mu.Lock()
		defer r.rec.mu.Unlock()
		text := "the program has returned, and goroutines of it go on:\n" + left
		for _, c := range r.rec.late {
			text += "they have sent: " + c.String() + "\n"
		}
		return errors.New(text)
	}
}

// goroutines are the stacks of the program's goroutines. Those that a goroutine starts have its
// labels.
func (r *Run) goroutines() string {
	var profile strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // into memory
	var all strings.Builder
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("%q:%q", labelName, r.label)) {
			all.WriteString(strings.TrimSpace(stack) + "\n\n")
		}
	}
	return all.String()
}
