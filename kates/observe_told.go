package kates

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/streamset"
)

// observers are those of a client. They do not change once the client is made.
type observers struct {
	all     []Observer
	log     logr.Logger
	cluster string // its name
	closed  []func()
	working watchdog.Open // their methods
	ended   atomic.Bool
}

// told are the observers that the options name, which all connections of the client share.
func (s *settings) told() *observers {
	if s.observing == nil {
		s.observing = &observers{all: slices.Clone(s.observers), log: s.log, cluster: s.cluster}
	}
	return s.observing
}

// begin tells the observers of the client, which is whole, and has sent no request yet.
func (o *observers) begin(c *Client) {
	for i, one := range o.all {
		if of, ok := one.(ClientObserver); ok {
			o.tell("ClientObserver.ObserveClient", func() {
				own, closed := of.ObserveClient(c)
				if own != nil {
					o.all[i] = own
				}
				if closed != nil {
					o.closed = append(o.closed, closed)
				}
			})
		}
	}
}

// end tells them that the client is closed.
func (o *observers) end() {
	if o.ended.Swap(true) {
		return
	}
	for _, closed := range o.closed {
		o.tell("what ClientObserver.ObserveClient has returned", closed)
	}
}

// tell calls a method of an observer. A panic is logged, and ends nothing.
func (o *observers) tell(what string, f func()) {
	lockorder.CallOut(what)
	defer o.working.Begin(what)()
	err := guard.Named(what, func() error {
		f()
		return nil
	})
	if err != nil {
		o.log.Error(err, "an observer has panicked", guard.Attribute(err)...)
	}
}

// requests has the observers told of the requests of a configuration.
func (o *observers) requests(config *rest.Config) {
	if len(o.all) > 0 {
		config.WrapTransport = transport.Wrappers(config.WrapTransport, wire.Observed(config, o.request))
	}
}

// request implements [wire.Observe].
func (o *observers) request(ctx context.Context, a wire.Asked) (context.Context, func(wire.Answered)) {
	info := RequestInfo(a)
	ctx, end := nested(ctx, o, "Observer.Request", func(ctx context.Context, one Observer) (context.Context, func(RequestResult)) {
		return one.Request(ctx, info)
	})
	return ctx, func(a wire.Answered) { end(RequestResult{Code: a.Code, Err: a.Err, Duration: a.Took}) }
}

// nested tells the observers that something begins, each in the context of the one before it. What
// it returns tells them the result, the innermost first.
func nested[R any](
	ctx context.Context, o *observers, what string, begin func(context.Context, Observer) (context.Context, func(R)),
) (context.Context, func(R)) {
	var ends []func(R)
	for _, one := range o.all {
		o.tell(what, func() {
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
			o.tell("what "+what+" has returned", func() { end(result) })
		}
	}
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
			o.tell("Observer.Updated", func() { one.Updated(u) })
		}
	}
}

// InspectStreams is for package inspect alone. It returns the streams of a client, which know its
// watches.
func InspectStreams(c *Client) *streamset.Set { return c.core.Streams }

// InspectServer is for package inspect alone. It returns the address of the server, empty for a
// fake.
func InspectServer(c *Client) string {
	if c.core.connection.link == nil {
		return ""
	}
	return c.core.connection.link.Now().Host
}
