package shared

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
)

// Told is how the observers of a client are told.
type Told struct {
	Log     logr.Logger
	Cluster string        // its name
	Working watchdog.Open // the methods of observers that run
	closed  []func()
	ended   atomic.Bool
}

// AtEnd has a function called when the client is closed.
func (t *Told) AtEnd(closed func()) {
	if closed != nil {
		t.closed = append(t.closed, closed)
	}
}

// End tells the observers that the client is closed.
func (t *Told) End() {
	if t.ended.Swap(true) {
		return
	}
	for _, closed := range t.closed {
		t.Tell("what ClientObserver.ObserveClient has returned", closed)
	}
}

// Tell calls a method of an observer. A panic is logged, and ends nothing.
func (t *Told) Tell(what string, f func()) {
	lockorder.CallOut(what)
	defer t.Working.Begin(what)()
	err := guard.Named(what, func() error {
		f()
		return nil
	})
	if err != nil {
		t.Log.Error(err, "an observer has panicked", guard.Attribute(err)...)
	}
}

// Nested tells the observers that something begins, each in the context of the one before it. What
// it returns tells them the result, the innermost first.
func Nested[O, R any](
	ctx context.Context, t *Told, all []O, what string, begin func(context.Context, O) (context.Context, func(R)),
) (context.Context, func(R)) {
	var ends []func(R)
	for _, one := range all {
		t.Tell(what, func() {
			inner, end := begin(ctx, one)
			if inner != nil {
				ctx = inner
			}
			if end != nil {
				ends = append(ends, end)
			}
		})
	}
	return ctx, func(result R) {
		for _, end := range slices.Backward(ends) {
			t.Tell("what "+what+" has returned", func() { end(result) })
		}
	}
}
