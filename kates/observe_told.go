package kates

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/guard"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/internal/wire"
)

// observers are those of a client.
type observers struct {
	all []Observer
	log logr.Logger
}

// told are the observers that the options name.
func (s *settings) told() observers { return observers{all: s.observers, log: s.log} }

// tell calls a method of an observer. A panic is logged, and ends nothing.
func (o observers) tell(what string, f func()) {
	lockorder.CallOut(what)
	err := guard.Named(what, func() error {
		f()
		return nil
	})
	if err != nil {
		o.log.Error(err, "an observer has panicked", guard.Attribute(err)...)
	}
}

// requests has the observers told of the requests of a configuration.
func (o observers) requests(config *rest.Config) {
	if len(o.all) > 0 {
		config.WrapTransport = transport.Wrappers(config.WrapTransport, wire.Observed(config, o.request))
	}
}

// request implements [wire.Observe].
func (o observers) request(ctx context.Context, a wire.Asked) (context.Context, func(wire.Answered)) {
	info := RequestInfo(a)
	var ends []func(RequestResult)
	for _, one := range o.all {
		o.tell("Observer.Request", func() {
			inner, end := one.Request(ctx, info)
			if inner != nil {
				ctx = inner
			}
			if end != nil {
				ends = append(ends, end)
			}
		})
	}
	return ctx, func(a wire.Answered) {
		result := RequestResult{Code: a.Code, Err: a.Err, Duration: a.Took}
		for i := range ends {
			end := ends[len(ends)-1-i] // the innermost first
			o.tell("what Observer.Request has returned", func() { end(result) })
		}
	}
}

// ofWatch returns the observer of a watch of that name, nil if there is none.
func (o observers) ofWatch(name string) collect.Observer {
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
func InspectStreams(c *Client) *stream.Set { return c.core.streams }

// InspectServer is for package inspect alone. It returns the address of the server, empty for a
// fake.
func InspectServer(c *Client) string {
	if c.core.connection.link == nil {
		return ""
	}
	return c.core.connection.link.Now().Host
}
