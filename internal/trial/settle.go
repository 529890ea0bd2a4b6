package trial

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// errCrashed means that the program has been stopped at one of its writes.
var errCrashed = errors.New("the program was stopped")

// Settle waits until the program has sent nothing for as long as the options say. A program that
// has returned without an error has settled. Calls count since it has settled last. The error
// describes what it does instead.
func (r *Run) Settle(o Options) error {
	first := r.settled
	limit := time.NewTimer(o.Within)
	defer limit.Stop()
	for wait := o.Quiet; ; {
		p := r.rec.position()
		switch {
		case p.crashed:
			return errCrashed
		case p.calls-p.open-first > o.Calls:
			return r.loop(first, o.Calls)
		}
		quiet := time.NewTimer(wait)
		select {
		case <-p.changed:
			wait = o.Quiet
		case <-r.done:
			quiet.Stop()
			return r.ended()
		case <-limit.C:
			quiet.Stop()
			return r.restless(first, o)
		case <-quiet.C:
			switch {
			case p.open > 0:
			case wait == o.Quiet:
				wait = 1 // others may be due at the same moment
			default:
				r.settled = p.calls
				return nil
			}
		}
		quiet.Stop()
	}
}

// ended is the judgement of a program that has returned by itself.
func (r *Run) ended() error {
	switch {
	case r.rec.position().crashed:
		return errCrashed
	case r.err != nil:
		return fmt.Errorf("the program has ended: %w", r.err)
	}
	return nil
}

// restless describes a program that has made few calls, and sends one now and then.
func (r *Run) restless(first int, o Options) error {
	var text strings.Builder
	calls := r.rec.since(first)
	fmt.Fprintf(&text, "the program does not settle within %s: it was never quiet for %s. It has made %d calls.", o.Within, o.Quiet, len(calls))
	some(&text, calls)
	return errors.New(text.String())
}
