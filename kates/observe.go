package kates

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kates-go/kates/internal/client/connection"
	"github.com/kates-go/kates/internal/client/shared"
	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/loops/keyed"
)

// Observer is told what a client does, at the moment when it does it: for metrics, traces and
// logs. What a client holds and has counted is to be asked for: see package kates/inspect.
//
// Its methods, and the functions that they return, are called without locks, by several goroutines
// at a time, on the way of what they observe: they return at once. A panic of one is logged, and
// ends nothing. Where a client has several observers, each is told.
//
// Package kates/prometheus has an observer that makes metrics, kates/otel one that makes spans,
// and kates/page one for the status page.
type Observer interface {
	// Request is called before a request is sent to the server. What it returns is the context of
	// the request, derived from ctx, and a function that is called once, when the answer is there:
	// when its header has been read. A watch is answered when it is open. The function may be nil.
	//
	// The context is that of the call which needs the request: a write in a reconcile has what
	// Call has returned for that. A client of a dynamic.Interface observes no requests.
	Request(ctx context.Context, r RequestInfo) (context.Context, func(RequestResult))
	// Call is called before the function of a [Run], a [RunEach] or a controller is called. What it
	// returns is the context of the call, derived from ctx, and a function that is called once, when
	// the function has returned. That function may be nil.
	Call(ctx context.Context, c CallInfo) (context.Context, func(CallResult))
	// Updated is called after an Update has delivered a snapshot that differs from the last one,
	// and when a key gets its turn.
	Updated(u UpdateInfo)
}

// RequestInfo is a request to the server, in the words of the Kubernetes API
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb).
type RequestInfo struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection. For a path that
	// is not of a resource (/version, /apis) it is the HTTP method in lower case.
	Verb string
	// Group, Version, Resource and Subresource; all empty for a path that is not of a resource.
	Group, Version, Resource, Subresource string
	// Namespace and Name of the object. They are for traces and logs: a metric with such a label
	// would grow with the cluster.
	Namespace, Name string
}

// RequestResult is the outcome of a request.
type RequestResult struct {
	// Code is the HTTP status; 0 if there was no answer.
	Code int
	// Err is why there was no answer.
	Err error
	// Duration until the header of the answer was read. Time that the client has waited for its
	// rate limit is not in it.
	Duration time.Duration
}

// CallInfo is a call of the function of a [Run], a [RunEach] or a controller.
type CallInfo struct {
	// Loop is the name of the run: the controller's name, or the Go type of the snapshot.
	Loop string
	// Key is that of the partition; empty for Run. A metric with such a label would grow with the
	// cluster.
	Key string
	// ID of the call, unique in this process and others: the reconcile ID of log lines.
	ID string
	// Attempt is 1, or more after failures in a row.
	Attempt int
	// Queued is how long the key was due before the call: ready, and waiting for a worker. It is 0
	// for Run.
	Queued time.Duration
}

// CallOutcome is how a call has ended, in controller-runtime's words.
type CallOutcome string

// The outcomes of a call.
const (
	CallSucceeded CallOutcome = "success"
	CallFailed    CallOutcome = "error"         // it is called again
	CallRequeued  CallOutcome = "requeue_after" // it has asked for another call: [Again]
	CallTerminal  CallOutcome = "terminal"      // its error is [Permanent]
	CallCut       CallOutcome = "cut"           // its context has ended, which says nothing about it
)

// CallResult is the outcome of a call.
type CallResult struct {
	Outcome CallOutcome
	// Err is that of the function; nil if there is none.
	Err      error
	Duration time.Duration
}

// UpdateInfo is a snapshot that was delivered.
type UpdateInfo struct {
	// Watch is the name of the watch, and ID tells the watches of this process apart: see package
	// kates/inspect.
	Watch string
	ID    int64
	// Key of the turn, where the snapshot is one of a partition.
	Key string
	// First: it is the first snapshot of the watch. Opened is how long ago the watch was opened.
	First  bool
	Opened time.Duration
	// Duration is how long the Update took, without the time that it waited for another one.
	Duration time.Duration
	// Changes is the number of objects that have been added, changed or removed.
	Changes int
	// Each calls yield with each of these, in the order of deltas, until it returns false. It is
	// valid during the call of Updated alone.
	Each func(yield func(query, namespace, name string, t DeltaType) bool)
}

// WithObserver has an observer told what the client does. It may be given several times.
func WithObserver(o Observer) Option {
	if o == nil {
		return senseless("WithObserver(nil): without the option nobody is told")
	}
	return option(func(s *settings) { s.observers = append(s.observers, o) })
}

// ClientObserver is an [Observer] that has another one for each client: one that knows whose
// doings it is told of. It learns of clients by itself, and so a program says WithObserver and no
// more.
type ClientObserver interface {
	Observer
	// ObserveClient is called when a client has been made with this observer. What it returns is
	// told what the client does, in place of this observer, unless it is nil. closed is called
	// once, when the client is closed; it may be nil. ObserveClient sends no requests.
	ObserveClient(c *Client) (o Observer, closed func())
}

// WithClusterName names the cluster of a client, for metrics, logs and the status page. It is for
// programs with clients of several clusters. Package fleet names those that it makes itself.
func WithClusterName(name string) Option {
	if name == "" {
		return senseless("WithClusterName: the name is empty; without the option the cluster has none")
	}
	return option(func(s *settings) { s.cluster = name })
}

// ClusterName returns what [WithClusterName] has set; "" if nothing has.
func (c *Client) ClusterName() string { return c.core.Told.Cluster }

// WithName sets the name of watches, for metrics, logs and the status page. The name is part of
// labels of metrics: choose few. Watches of one name are counted as one in metrics. Default: the
// Go type of the snapshot's struct, the name of the controller, or the names of the queries.
func WithName(name string) WatchOption {
	return watchOption(func(w *watchSettings) {
		if name == "" {
			w.reject(errors.New("WithName: the name is empty; without the option it is the Go type of the snapshot"))
		}
		w.name = name
	})
}

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

// request implements [connection.Observe].
func (o *observers) request(ctx context.Context, a connection.Asked) (context.Context, func(connection.Answered)) {
	info := RequestInfo(a)
	ctx, end := shared.Nested(ctx, &o.Told, o.all, "Observer.Request", func(ctx context.Context, one Observer) (context.Context, func(RequestResult)) {
		return one.Request(ctx, info)
	})
	return ctx, func(a connection.Answered) { end(RequestResult{Code: a.Code, Err: a.Err, Duration: a.Took}) }
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

// callsOfFleet are the calls of a run over many clusters that no client of a cluster makes. The
// observers of the clusters' clients are told of these calls. If there are none, the observers of
// the home cluster's client are told. The loop is among those of the home cluster's client, or, if
// there is no home cluster, of the fleet.
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
