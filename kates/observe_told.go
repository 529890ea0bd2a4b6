package kates

import (
	"context"
	"slices"

	"github.com/kates-go/kates/internal/client/shared"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/loops/keyed"
)

// observers are those of a client. They do not change once the client is made.
type observers struct {
	shared.Told
	all []Observer
}

// observe returns the observers that the options name, which all connections of the client share.
func (s *settings) observe() *observers {
	if s.observing == nil {
		s.observing = &observers{shared.Told{Log: s.log, Cluster: s.cluster}, slices.Clone(s.observers)}
	}
	return s.observing
}

// begin tells the observers of the client, which is whole, and has sent no request yet.
func (o *observers) begin(c *Client) {
	for i, one := range o.all {
		if of, ok := one.(ClientObserver); ok {
			o.Tell("ClientObserver.ObserveClient", func() {
				own, closed := of.ObserveClient(c)
				if own != nil {
					o.all[i] = own
				}
				o.AtEnd(closed)
			})
		}
	}
}

// request implements [wire.Observe].
func (o *observers) request(ctx context.Context, a wire.Asked) (context.Context, func(wire.Answered)) {
	info := RequestInfo(a)
	ctx, end := shared.Nested(ctx, &o.Told, o.all, "Observer.Request", func(ctx context.Context, one Observer) (context.Context, func(RequestResult)) {
		return one.Request(ctx, info)
	})
	return ctx, func(a wire.Answered) { end(RequestResult{Code: a.Code, Err: a.Err, Duration: a.Took}) }
}

// ofWatch returns the observer of a watch of that name, nil if there is none.
func (o *observers) ofWatch(name string) collect.Observer {
	if len(o.all) == 0 {
		return nil
	}
	return func(d collect.Delivered) {
		u := UpdateInfo{
			Watch: name, ID: d.ID, Key: d.Key, First: d.First, Opened: d.Opened, Duration: d.Took, Changes: len(d.Differences),
			Each: func(yield func(query, namespace, name string, t DeltaType) bool) {
				for _, one := range d.Differences {
					t, o := changeOf(one)
					if !yield(one.Query, o.GetNamespace(), o.GetName(), t) {
						return
					}
				}
			},
		}
		for _, one := range o.all {
			o.Tell("Observer.Updated", func() { one.Updated(u) })
		}
	}
}

// call implements [keyed.Observe].
func (o *observers) call(ctx context.Context, c keyed.Call) (context.Context, func(keyed.Result)) {
	if len(o.all) == 0 {
		return ctx, func(keyed.Result) {}
	}
	info := CallInfo{Loop: c.Loop, Key: c.Key, ID: c.ID, Attempt: c.Attempt, Queued: c.Queued}
	ctx, end := shared.Nested(ctx, &o.Told, o.all, "Observer.Call", func(ctx context.Context, one Observer) (context.Context, func(CallResult)) {
		return one.Call(ctx, info)
	})
	return ctx, func(r keyed.Result) { end(CallResult{Outcome: CallOutcome(r.Ended), Err: r.Err, Duration: r.Duration}) }
}

// callsOfFleet are the calls of a run over many clusters that no client of these makes. They are
// told to the observers of the clusters' clients, or to those of the home cluster's if there are
// none. The loop is one of the home cluster's, or of the fleet's.
func callsOfFleet(run doors.FleetRun, workers int) *keyed.Calls {
	s, err := newSettings("", run.Clients.([]Option))
	if err != nil {
		s = &settings{} // each cluster's client has that error
	}
	told, loops := s.observe(), run.Loops
	if home := run.Home.(*Client); home != nil {
		loops = &home.core.Loops
		if len(told.all) == 0 {
			told = home.observers
		}
	}
	return loops.New(run.Name, workers, told.call)
}
