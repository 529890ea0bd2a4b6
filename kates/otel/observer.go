// Package otel makes OpenTelemetry spans of the calls and requests of a kates client:
//
//	client, err := kates.NewClient(config, kates.WithObserver(otel.Observer()))
//
// Each call of the function of a Run, a RunEach or a controller is a span, and each request is
// one. A request that is made with the context of a call is a child of the call's span, so a trace
// shows what a reconcile has read and written, and how long each took. A span of the program's own
// fits in between: start it with that context. Lists and watches of streams belong to no call:
// they are traces of their own. The span of a watch ends when the watch is open.
//
// The attributes follow OpenTelemetry's semantic conventions where there are some:
//
//	k8s.cluster.name            the client's name (kates.WithClusterName), both
//	k8s.namespace.name          of a request
//	http.request.method         of a request
//	http.response.status_code   of a request, if there was an answer
//	error.type                  the status, the server's reason, or the Go type of an error
//	kates.loop, kates.key       of a call
//	kates.reconcile_id          of a call: that of the log lines
//	kates.attempt, kates.queued of a call: the number of the try, and the seconds in the queue
//	kates.outcome               of a call
//	kates.verb, kates.resource, kates.subresource, kates.name  of a request
//
// No span has content of an object, or the text of an error, which may quote some. Errors are in
// the log, by the reconcile ID.
//
// An observer sees no headers. [Propagate] is a wrapper of the transport that adds the trace to
// requests: an API server with tracing makes its own spans of that trace
// (https://kubernetes.io/docs/concepts/cluster-administration/system-traces/).
package otel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// scope names the spans' origin.
const scope = "github.com/kates-go/kates/kates/otel"

// Option is an option of [Observer].
type Option func(*observer)

// WithTracerProvider sets where spans come from. Default: otel.GetTracerProvider().
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *observer) { o.provider = p }
}

// observer makes the spans.
type observer struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
	cluster  []attribute.KeyValue // that of the client; nil: it has no name
}

var _ kates.ClientObserver = observer{}

// Observer returns an observer that makes spans, for any number of clients.
func Observer(options ...Option) kates.Observer {
	var o observer
	for _, option := range options {
		option(&o)
	}
	if o.provider == nil {
		o.provider = otel.GetTracerProvider()
	}
	o.tracer = o.provider.Tracer(scope)
	return o
}

// ObserveClient implements [kates.ClientObserver].
func (o observer) ObserveClient(c *kates.Client) (own kates.Observer, closed func()) {
	if name := c.ClusterName(); name != "" {
		o.cluster = []attribute.KeyValue{attribute.String("k8s.cluster.name", name)}
	}
	return o, nil
}

// Call implements [kates.Observer].
func (o observer) Call(ctx context.Context, c kates.CallInfo) (context.Context, func(kates.CallResult)) {
	attributes := append([]attribute.KeyValue{
		attribute.String("kates.loop", c.Loop),
		attribute.String("kates.reconcile_id", c.ID),
		attribute.Int("kates.attempt", c.Attempt),
		attribute.Float64("kates.queued", c.Queued.Seconds()),
	}, o.cluster...)
	attributes = also(attributes, "kates.key", c.Key)
	ctx, span := o.tracer.Start(ctx, "reconcile "+c.Loop, trace.WithAttributes(attributes...))
	return ctx, func(r kates.CallResult) {
		span.SetAttributes(attribute.String("kates.outcome", string(r.Outcome)))
		if r.Outcome == kates.CallFailed || r.Outcome == kates.CallTerminal {
			failed(span, typeOf(r.Err))
		}
		span.End()
	}
}

// Request implements [kates.Observer].
func (o observer) Request(ctx context.Context, r kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	attributes := append([]attribute.KeyValue{
		attribute.String("http.request.method", methodOf(r.Verb)),
		attribute.String("kates.verb", r.Verb),
	}, o.cluster...)
	name := r.Verb
	if r.Resource != "" {
		resource := r.Resource + "." + r.Version
		if r.Group != "" {
			resource += "." + r.Group
		}
		name += " " + r.Resource
		attributes = also(attributes, "kates.resource", resource)
	}
	attributes = also(attributes, "kates.subresource", r.Subresource)
	attributes = also(attributes, "k8s.namespace.name", r.Namespace)
	attributes = also(attributes, "kates.name", r.Name)
	ctx, span := o.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return ctx, func(r kates.RequestResult) {
		switch {
		case r.Code == 0:
			failed(span, typeOf(r.Err))
		default:
			span.SetAttributes(attribute.Int("http.response.status_code", r.Code))
			if r.Code >= http.StatusBadRequest {
				failed(span, strconv.Itoa(r.Code))
			}
		}
		span.End()
	}
}

// Updated implements [kates.Observer]. A snapshot is no span: it has no context.
func (o observer) Updated(kates.UpdateInfo) {}

// also adds an attribute that is not empty.
func also(all []attribute.KeyValue, key, value string) []attribute.KeyValue {
	if value == "" {
		return all
	}
	return append(all, attribute.String(key, value))
}

// failed notes an error, by its type alone.
func failed(span trace.Span, errorType string) {
	span.SetAttributes(attribute.String("error.type", errorType))
	span.SetStatus(codes.Error, errorType)
}

// typeOf names an error without its text: the server's reason, how the context has ended, or the
// Go type of the innermost error.
func typeOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// methodOf is the HTTP method of a verb of the Kubernetes API.
func methodOf(verb string) string {
	switch verb {
	case "get", "list", "watch":
		return http.MethodGet
	case "create":
		return http.MethodPost
	case "update":
		return http.MethodPut
	case "delete", "deletecollection":
		return http.MethodDelete
	}
	return strings.ToUpper(verb)
}

// Propagate adds the trace of a request's context to its headers (W3C Trace Context), for the API
// server to go on with. It is a wrapper of a REST configuration's transport:
//
//	config.Wrap(otel.Propagate)
//	client, err := kates.NewClientFromRESTConfig(config, kates.WithObserver(otel.Observer()))
func Propagate(next http.RoundTripper) http.RoundTripper { return propagated{next} }

type propagated struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (p propagated) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace.SpanContextFromContext(r.Context()).IsValid() {
		r = r.Clone(r.Context())
		propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	}
	return p.next.RoundTrip(r)
}

// WrappedRoundTripper returns the transport that is wrapped, for client-go.
func (p propagated) WrappedRoundTripper() http.RoundTripper { return p.next }
