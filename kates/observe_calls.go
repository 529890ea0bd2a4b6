package kates

import (
	"context"

	"github.com/kates-go/kates/internal/loops/keyed"
)

// call implements [keyed.Observe].
func (o *observers) call(ctx context.Context, c keyed.Call) (context.Context, func(keyed.Result)) {
	if len(o.all) == 0 {
		return ctx, func(keyed.Result) {}
	}
	info := CallInfo{Loop: c.Loop, Key: c.Key, ID: c.ID, Attempt: c.Attempt, Queued: c.Queued}
	ctx, end := nested(ctx, o, "Observer.Call", func(ctx context.Context, one Observer) (context.Context, func(CallResult)) {
		return one.Call(ctx, info)
	})
	return ctx, func(r keyed.Result) { end(CallResult{Outcome: CallOutcome(r.Ended), Err: r.Err, Duration: r.Duration}) }
}

// callsOfFleet are the calls of a run over many clusters that no client of these makes. They are
// told to the observers of the clusters' clients, or to those of the home cluster's if there are
// none. The loop is one of the home cluster's, or of the fleet's.
func callsOfFleet(home *Client, loops *keyed.Loops, clients []Option, name string, workers int) *keyed.Calls {
	s, err := newSettings("", clients)
	if err != nil {
		s = &settings{} // each cluster's client has that error
	}
	told := s.told()
	if home != nil {
		loops = &home.core.loops
		if len(told.all) == 0 {
			told = home.core.observers
		}
	}
	return loops.New(name, workers, told.call)
}

// InspectLoops is for package inspect alone: its result cannot be named elsewhere. It says what
// the loops do that run now.
func InspectLoops(c *Client) []keyed.LoopReport { return c.core.loops.Reports() }

// CallIDFromContext returns the ID of the call of a [Run], a [RunEach] or a controller whose
// context this is, or is derived from; empty if there is none. Each call has another one: a UUID.
// Package controller's calls are the reconciles, and controller-runtime's name for it is a
// reconcile ID.
//
// The log line of a failed call has it, as reconcileID, and so have those of the writes that were
// made with the call's context, at level V(2). The logger of that context has it, too:
//
//	klog.FromContext(ctx).Info("rebuilding") // has run or controller, key, and reconcileID
func CallIDFromContext(ctx context.Context) string { return keyed.CallID(ctx) }
