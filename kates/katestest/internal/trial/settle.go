package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// errCrashed means that the program has been stopped at one of its writes.
var errCrashed = errors.New("the program was stopped")

// Settle waits until the program has sent nothing for as long as the options say. A program that
// has returned without an error has settled, and one that cannot do its work has not. Calls count
// since it has settled last. The error describes what it does instead.
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
				if idle := r.idle(o); idle == nil || r.rec.bubble {
					return idle
				}
				wait = o.Quiet // the machine may be slow
			}
		}
		quiet.Stop()
	}
}

// idle says why a program makes no calls, nil if it has done its work.
func (r *Run) idle(o Options) error {
	r.rec.mu.Lock()
	clients := slices.Clone(r.rec.clients)
	r.rec.mu.Unlock()
	for _, c := range clients {
		if err := o.Idle(c); err != nil {
			return fmt.Errorf("the program makes no calls, and its work is not done: %w", err)
		}
	}
	return nil
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
	if err := r.idle(o); err != nil {
		return err
	}
	var text strings.Builder
	calls := r.rec.since(first)
	fmt.Fprintf(&text, "the program does not settle within %s: it was never quiet for %s. It has made %d calls.", o.Within, o.Quiet, len(calls))
	some(&text, calls)
	return errors.New(text.String())
}
