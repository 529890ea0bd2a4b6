package kates

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/attempts"
	"github.com/kates-go/kates/internal/guard"
)

// tries are the calls of one function that is called until it succeeds, and then for the next change.
type tries struct {
	settings *runSettings
	log      logr.Logger

	failures int  // in a row
	panicked bool // the last one did
}

// call calls f. It returns when to try again, if f has failed, and the error that ends the run, if it is permanent. An error
// that comes with the end of ctx counts as its consequence.
func (t *tries) call(ctx context.Context, f func() error) (again time.Duration, end error) {
	err := withoutPanic(f)
	if err == nil {
		t.succeeded()
		return 0, nil
	}
	var p *PanicError
	panicked := errors.As(err, &p)
	_, final := attempts.Final(err)
	if ctx.Err() != nil && !panicked && (!final || errors.Is(err, context.Canceled)) {
		return 0, ctx.Err()
	}
	t.failed(err, panicked, final)
	if final {
		return 0, err
	}
	return t.wait(err), nil
}

// wait is how long to wait after an error.
func (t *tries) wait(err error) time.Duration {
	var said *attempts.Later
	if errors.As(err, &said) {
		return said.After
	}
	return t.settings.backoff.After(t.failures)
}

// withoutPanic calls f, with a panic as an error.
func withoutPanic(f func() error) error { return guard.Handle(f, newPanicError) }

func (t *tries) succeeded() {
	if t.failures > 0 {
		t.log.Info("the function has succeeded again", "attempts", t.failures+1)
	}
	t.failures = 0
}

// failed takes a failure in. That the function begins to fail is logged, and if it does so in another way; not each time.
func (t *tries) failed(err error, panicked, final bool) {
	t.failures++
	log, what := t.log.WithValues("attempt", t.failures), "the function has failed"
	if panicked {
		what = "the function has panicked"
	}
	switch {
	case final:
		log.Error(err, what+" for good")
	case t.failures == 1 || t.panicked != panicked:
		log.Error(err, what+", will keep trying", "again", t.wait(err).String())
	default:
		log.V(1).Info(what+" again", "error", err.Error())
	}
	t.panicked = panicked
	for _, f := range t.settings.failed {
		told := withoutPanic(func() error { f(err, t.failures); return nil })
		if told != nil {
			t.log.Error(told, "the function that is told of errors has panicked")
		}
	}
}
