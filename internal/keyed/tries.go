package keyed

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/guard"
)

// Tries count the calls of one function that is called until it succeeds, and then for the next
// change. They log when errors begin and end, and tell the policy's functions of each.
type Tries struct {
	Policy *Policy
	Log    logr.Logger

	key      string // whose errors they are; empty: of no key
	failures int    // in a row
	panicked bool   // the last one was a panic
	told     bool   // one of them was logged
}

// NewTries are those of something that has a name: its errors are [Policy.OfKey].
func NewTries(p *Policy, log logr.Logger, name string) *Tries {
	return &Tries{Policy: p, Log: log, key: name}
}

// Call calls f. It returns how that has ended, and the error that ends the tries, if it is
// permanent. An error that comes with the end of ctx counts as its consequence: then the call was
// cut, and end is the error of ctx.
func (t *Tries) Call(ctx context.Context, f func() error) (o Outcome, end error) {
	stack, err := t.guarded(f)
	panicked := stack != nil
	_, final := attempts.Final(err)
	asked := attempts.Asks(err)
	switch {
	case err == nil:
		t.succeeded()
		return Outcome{}, nil
	case asked != nil && !asked.Backoff && !final:
		t.succeeded()
		return Outcome{Requeue: true, Again: asked.After}, nil
	case ctx.Err() != nil && !panicked && (!final || errors.Is(err, context.Canceled)):
		return Outcome{Cut: true, Attempt: t.failures}, ctx.Err()
	}
	t.failures++
	if asked == nil || final {
		t.tell(err, stack, final)
	}
	t.panicked = panicked
	o = Outcome{Err: err, Attempt: t.failures, Final: final}
	if final {
		return o, err
	}
	o.Again = t.wait(err)
	return o, nil
}

// guarded calls f. Its error names the key. The attribute is that of a panic, nil if there was
// none.
func (t *Tries) guarded(f func() error) (stack []any, err error) {
	err = guard.Handle(f, func(p *guard.Panic) error {
		stack = guard.Attribute(p)
		return t.Policy.Panicked(p)
	})
	if err != nil && t.key != "" {
		err = t.Policy.OfKey(t.key, err)
	}
	return stack, err
}

// wait is how long to wait after an error.
func (t *Tries) wait(err error) time.Duration {
	var said *attempts.Later
	if errors.As(err, &said) {
		return said.After
	}
	return t.Policy.Backoff.After(t.failures)
}

func (t *Tries) succeeded() {
	if t.told {
		t.Log.Info("the function has succeeded again", "attempts", t.failures+1)
	}
	t.failures, t.told = 0, false
}

// tell logs an error, if it is the first one in a row or the first of another sort, and tells the
// policy's functions of it.
func (t *Tries) tell(err error, stack []any, final bool) {
	log, what := t.Log.WithValues("attempt", t.failures), "the function has failed"
	panicked := stack != nil
	if panicked {
		what = "the function has panicked"
	}
	switch {
	case final:
		log.Error(err, what+" for good", stack...)
	case !t.told || t.panicked != panicked:
		details := append([]any{"again", t.wait(err).String()}, stack...)
		log.Error(err, what+", will keep trying", details...)
	default:
		log.V(1).Info(what+" again", "error", err.Error())
	}
	t.told = true
	for _, f := range t.Policy.OnError {
		if broken := guard.Call(func() error { f(err, t.failures); return nil }); broken != nil {
			const what = "the function that is told of errors has panicked"
			t.Log.Error(broken, what, guard.Attribute(broken)...)
		}
	}
}
