package prometheus

import (
	"context"
	"strconv"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kates-go/kates/kates"
)

// observed is the observer of a cluster's clients, and what it has counted.
type observed struct {
	cluster string
	names   *names

	requests, reconciles, retries         *prom.CounterVec
	requestTimes, first, updates, changes *prom.HistogramVec
	reconcileTimes, reconcileQueued       *prom.HistogramVec
	vecs                                  []prom.Collector
	of                                    map[*metric]bool // the metrics that are here
}

func newObserved(cluster string) *observed {
	o := &observed{cluster: cluster, names: newNames(), of: make(map[*metric]bool)}
	o.requests, o.reconciles, o.retries = o.counter(requests), o.counter(reconciles), o.counter(reconcileRetries)
	o.requestTimes, o.first = o.histogram(requestDuration), o.histogram(watchFirst)
	o.updates, o.changes = o.histogram(updateDuration), o.histogram(updateChanges)
	o.reconcileTimes, o.reconcileQueued = o.histogram(reconcileDuration), o.histogram(reconcileQueue)
	return o
}

func (o *observed) counter(m *metric) *prom.CounterVec {
	v := prom.NewCounterVec(prom.CounterOpts{Name: m.name, Help: m.help}, m.allLabels())
	o.vecs, o.of[m] = append(o.vecs, v), true
	return v
}

// histogram has the buckets of old, and native ones for a Prometheus that asks for them.
func (o *observed) histogram(m *metric) *prom.HistogramVec {
	v := prom.NewHistogramVec(prom.HistogramOpts{
		Name: m.name, Help: m.help, Buckets: m.buckets, NativeHistogramBucketFactor: 1.1,
		NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, m.allLabels())
	o.vecs, o.of[m] = append(o.vecs, v), true
	return v
}

func (o *observed) has(m *metric) bool { return o.of[m] }

func (o *observed) describe(to chan<- *prom.Desc) {
	for _, v := range o.vecs {
		v.Describe(to)
	}
}

func (o *observed) collect(to chan<- prom.Metric) {
	for _, v := range o.vecs {
		v.Collect(to)
	}
}

// verbs are those of the Kubernetes API, and methods of requests for other paths.
var verbs = map[string]bool{
	"get": true, "list": true, "watch": true, "create": true, "update": true, "patch": true, "delete": true,
	"deletecollection": true, "post": true, "put": true, "head": true, "options": true,
}

// Request is part of [kates.Observer].
func (o *observed) Request(
	ctx context.Context, r kates.RequestInfo,
) (context.Context, func(kates.RequestResult)) {
	return ctx, func(result kates.RequestResult) {
		verb, code := r.Verb, "<error>" // as client-go has it
		if !verbs[verb] {
			verb = other
		}
		switch {
		case result.Code >= 100 && result.Code < 600:
			code = strconv.Itoa(result.Code)
		case result.Code != 0:
			code = other
		}
		resource := o.names.requested(r, result.Code)
		o.requests.WithLabelValues(o.cluster, verb, resource, code).Inc()
		o.requestTimes.WithLabelValues(o.cluster, verb, resource).Observe(result.Duration.Seconds())
	}
}

var results = []kates.CallOutcome{
	kates.CallSucceeded, kates.CallFailed, kates.CallRequeued, kates.CallTerminal, kates.CallCut,
}

// Call is part of [kates.Observer].
func (o *observed) Call(ctx context.Context, c kates.CallInfo) (context.Context, func(kates.CallResult)) {
	loop := o.names.loops.admit(c.Loop)
	for _, result := range results { // all from the beginning: a rise from nothing is not seen
		o.reconciles.WithLabelValues(o.cluster, loop, string(result))
	}
	retries := o.retries.WithLabelValues(o.cluster, loop)
	if c.Attempt > 1 {
		retries.Inc()
	}
	o.reconcileQueued.WithLabelValues(o.cluster, loop).Observe(c.Queued.Seconds())
	return ctx, func(r kates.CallResult) {
		o.reconciles.WithLabelValues(o.cluster, loop, string(r.Outcome)).Inc()
		o.reconcileTimes.WithLabelValues(o.cluster, loop).Observe(r.Duration.Seconds())
	}
}

// Updated is part of [kates.Observer].
func (o *observed) Updated(u kates.UpdateInfo) {
	watch := o.names.watches.admit(u.Watch)
	o.updates.WithLabelValues(o.cluster, watch).Observe(u.Duration.Seconds())
	o.changes.WithLabelValues(o.cluster, watch).Observe(float64(u.Changes))
	if u.First {
		o.first.WithLabelValues(o.cluster, watch).Observe(u.Opened.Seconds())
	}
}
