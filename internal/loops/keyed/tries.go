package keyed

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/loops/attempts"
)

// Tries count the calls of one function that is called until it succeeds, and then for the next
// change. They log when errors begin and end, and tell the policy's functions of each.
type Tries struct {
	Policy *Policy
	Log    logr.Logger
	Calls  *Calls // nil: nobody is told of the calls

	key      string // whose errors they are; empty: of no key
	failures int    // in a row
	panicked bool   // the last one was a panic
	told     bool   // one of them was logged
}

// NewTries are those of something that has a name: its errors are [Policy.OfKey].
func NewTries(p *Policy, log logr.Logger, name string) *Tries {
	return &Tries{Policy: p, Log: log, key: name}
}

// Forget ends the tries though the last call may have failed: nothing is to be done any more.
func (t *Tries) Forget() { t.Calls.forget(t.key) }

// Call calls f with the context of the call, made of ctx. ready is when the call was; zero: it has
// not waited. It returns how that has ended, and the error that ends the tries, if it is
// permanent. An error that comes with the end of ctx counts as its consequence: then the call was
// cut, and end is the error of ctx.
func (t *Tries) Call(ctx context.Context, ready time.Time, f func(ctx context.Context) error) (o Outcome, end error) {
	log := t.Log
	if t.Calls == nil {
		stack, err := t.guarded(ctx, f)
		return t.judge(ctx, log, stack, t.ofKey(err))
	}
	inner, call, ended := t.Calls.call(ctx, log, t.key, t.failures+1, ready)
	r := Result{Ended: Cut} // also if the function ends its goroutine
	defer func() { ended(r) }()
	stack, err := t.guarded(inner, f)
	o, end = t.judge(ctx, log.WithValues("reconcileID", call.ID), stack, t.ofKey(err))
	r = resultOf(o, err)
	r.Panicked = stack != nil
	return o, end
}

// resultOf is the result of a call with that error.
func resultOf(o Outcome, err error) Result {
	asked := attempts.Asks(err)
	switch {
	case o.Cut:
		return Result{Ended: Cut, Err: err}
	case o.Final:
		return Result{Ended: Terminal, Err: err}
	case asked != nil:
		return Result{Ended: Requeued}
	case err != nil:
		return Result{Ended: Failed, Err: err}
	}
	return Result{Ended: Succeeded}
}

// judge says how a call has ended. The attribute is that of a panic, nil if there was none.
func (t *Tries) judge(ctx context.Context, log logr.Logger, stack []any, err error) (o Outcome, end error) {
	panicked := stack != nil
	_, final := attempts.Final(err)
	asked := attempts.Asks(err)
	switch {
	case err == nil:
		t.succeeded(log)
		return Outcome{}, nil
	case asked != nil && !asked.Backoff && !final:
		t.succeeded(log)
		return Outcome{Requeue: true, Again: asked.After}, nil
	case ctx.Err() != nil && !panicked && (!final || errors.Is(err, context.Canceled)):
		return Outcome{Cut: true, Attempt: t.failures}, ctx.Err()
	}
	t.failures++
	if asked == nil || final {
		t.tell(log, failure{err, stack, final})
	}
	t.panicked = panicked
	o = Outcome{Err: err, Attempt: t.failures, Final: final}
	if final {
		return o, err
	}
	o.Again = t.wait(err)
	return o, nil
}

// guarded calls f. The attribute is that of a panic, nil if there was none.
func (t *Tries) guarded(ctx context.Context, f func(ctx context.Context) error) (stack []any, err error) {
	err = guard.Handle(func() error { return f(ctx) }, func(p *guard.Panic) error {
		stack = guard.Attribute(p)
		return t.Policy.Panicked(p)
	})
	return stack, err
}

// ofKey is an error that names the key.
func (t *Tries) ofKey(err error) error {
	if err == nil || t.key == "" {
		return err
	}
	return t.Policy.OfKey(t.key, err)
}

// wait is how long to wait after an error.
func (t *Tries) wait(err error) time.Duration {
	var said *attempts.Later
	if errors.As(err, &said) {
		return said.After
	}
	return t.Policy.Backoff.After(t.failures)
}

func (t *Tries) succeeded(log logr.Logger) {
	if t.told {
		log.Info("the function has succeeded again", "attempts", t.failures+1)
	}
	t.failures, t.told = 0, false
}

// failure is an error of a call.
type failure struct {
	err   error
	stack []any // the attribute of a panic, nil if there was none
	final bool  // it is permanent
}

// tell logs an error, if it is the first one in a row or the first of another sort, and tells the
// policy's functions of it.
func (t *Tries) tell(log logr.Logger, f failure) {
	err, stack := f.err, f.stack
	log, what := log.WithValues("attempt", t.failures), "the function has failed"
	panicked := stack != nil
	if panicked {
		what = "the function has panicked"
	}
	switch {
	case f.final:
		log.Error(err, what+" for good", stack...)
	case !t.told || t.panicked != panicked:
		details := append([]any{"again", t.wait(err).String()}, stack...)
		log.Error(err, what+", will keep trying", details...)
	default:
		log.V(1).Info(what+" again", "err", err)
	}
	t.told = true
	for _, onError := range t.Policy.OnError {
		if broken := guard.Call(func() error { onError(err, t.failures); return nil }); broken != nil {
			t.Log.Error(broken, "the function that is told of errors has panicked", guard.Attribute(broken)...)
		}
	}
}
