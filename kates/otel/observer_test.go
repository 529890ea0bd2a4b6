package otel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/otel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type maps struct{ ConfigMaps []*kates.ConfigMap }

func configMap(name string) *kates.ConfigMap {
	cm := &kates.ConfigMap{}
	cm.APIVersion, cm.Kind, cm.Namespace, cm.Name = "v1", "ConfigMap", "default", name
	return cm
}

// traced returns a client whose spans go to an exporter in memory.
func traced(t *testing.T, config *rest.Config) (*kates.Client, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	c, err := kates.NewClientFromRESTConfig(config, kates.WithClusterName("east"),
		kates.WithObserver(otel.Observer(otel.WithTracerProvider(provider))))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, spans
}

// text writes a span in a line, without times and IDs.
func text(s tracetest.SpanStub) string {
	var all []string
	for _, a := range s.Attributes {
		value := a.Value.String()
		if a.Key == "kates.reconcile_id" {
			value = "ID"
		}
		if a.Key == "kates.queued" {
			value = "S"
		}
		all = append(all, fmt.Sprintf("%s=%s", a.Key, value))
	}
	slices.Sort(all)
	status := ""
	if s.Status.Code == codes.Error {
		status = " failed: " + s.Status.Description
	}
	return fmt.Sprintf("%s (%s): %s%s", s.Name, s.SpanKind, strings.Join(all, " "), status)
}

// after are the spans whose parent is that one, in the order of their ends.
func after(all tracetest.SpanStubs, parent trace.SpanContext) (lines []string) {
	for _, s := range all {
		if s.Parent.SpanID() == parent.SpanID() {
			lines = append(lines, text(s))
		}
	}
	return lines
}

func TestACallIsASpanAndTheRequestsThatItMakesAreItsChildren(t *testing.T) {
	server := katestest.NewServer(t, katestest.WithObjects(configMap("a")))
	c, spans := traced(t, rest.CopyConfig(server.Config))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	attempt := 0
	require.NoError(t, kates.RunEach(ctx, c, func(ctx context.Context, _ string, _ *maps) error {
		switch attempt++; attempt {
		case 1:
			err := c.Create(ctx, configMap("a"), nil)
			return fmt.Errorf("hidden-text: %w", err)
		case 2:
			return errors.New("hidden-text")
		}
		defer cancel()
		return c.Delete(ctx, configMap("a"), nil)
	}, kates.Query{Name: "ConfigMaps", Key: kates.ByName}, kates.WithBackoff(time.Millisecond, time.Millisecond)))
	all := spans.GetSpans()
	var calls []tracetest.SpanStub
	for _, s := range all {
		if strings.HasPrefix(s.Name, "reconcile ") {
			calls = append(calls, s)
		}
	}
	require.GreaterOrEqual(t, len(calls), 3)
	const reconcile = "reconcile otel_test.maps (internal): k8s.cluster.name=east kates.attempt="
	assert.Equal(t, "reconcile otel_test.maps (internal): error.type=AlreadyExists k8s.cluster.name=east kates.attempt=1 kates.key=a kates.loop=otel_test.maps kates.outcome=error kates.queued=S kates.reconcile_id=ID failed: AlreadyExists", text(calls[0]))
	assert.Equal(t, "reconcile otel_test.maps (internal): error.type=*errors.errorString k8s.cluster.name=east kates.attempt=2 kates.key=a kates.loop=otel_test.maps kates.outcome=error kates.queued=S kates.reconcile_id=ID failed: *errors.errorString", text(calls[1]))
	assert.Equal(t, reconcile+"3 kates.key=a kates.loop=otel_test.maps kates.outcome=success kates.queued=S kates.reconcile_id=ID", text(calls[2]))
	assert.Equal(t, []string{
		"create configmaps (client): error.type=409 http.request.method=POST http.response.status_code=409 k8s.cluster.name=east k8s.namespace.name=default kates.resource=configmaps.v1 kates.verb=create failed: 409",
	}, after(all, calls[0].SpanContext))
	assert.Empty(t, after(all, calls[1].SpanContext))
	assert.Equal(t, []string{
		"delete configmaps (client): http.request.method=DELETE http.response.status_code=200 k8s.cluster.name=east k8s.namespace.name=default kates.name=a kates.resource=configmaps.v1 kates.verb=delete",
	}, after(all, calls[2].SpanContext))
	assert.True(t, slices.ContainsFunc(all, func(s tracetest.SpanStub) bool {
		return s.Name == "list configmaps" && !s.Parent.IsValid()
	}), "the list of a stream belongs to no call")
}

func TestNoSpanHasContentOfAnObject(t *testing.T) {
	server := katestest.NewServer(t)
	c, spans := traced(t, rest.CopyConfig(server.Config))
	bad := configMap("bad")
	bad.Labels = map[string]string{"hidden-key": "hidden-content!"}
	bad.Data = map[string]string{"hidden-key": "hidden-content"}
	err := c.Create(t.Context(), bad, nil)
	require.ErrorContains(t, err, "hidden-content", "the server quotes it")
	secret := &kates.Secret{}
	secret.Name, secret.StringData = "s", map[string]string{"hidden-key": "hidden-content"}
	require.NoError(t, c.Create(t.Context(), secret, nil))
	server.Close()
	require.Error(t, c.Create(t.Context(), configMap("late"), nil))
	all := spans.GetSpans()
	require.NotEmpty(t, all)
	for _, s := range all {
		assert.NotContains(t, fmt.Sprintf("%+v", s), "hidden")
	}
	last := all[len(all)-1]
	assert.Equal(t, codes.Error, last.Status.Code)
}

// headers notes the headers of requests.
type headers struct {
	mu   sync.Mutex
	all  []http.Header
	next http.RoundTripper
}

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.all = append(h.all, r.Header.Clone())
	h.mu.Unlock()
	return h.next.RoundTrip(r)
}

func TestPropagateGivesTheServerTheSpanOfTheRequest(t *testing.T) {
	server := katestest.NewServer(t)
	config, seen := rest.CopyConfig(server.Config), &headers{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		seen.next = next
		return seen
	})
	config.Wrap(otel.Propagate)
	c, spans := traced(t, config)
	require.NoError(t, c.Create(t.Context(), configMap("a"), nil))
	all := spans.GetSpans()
	created := all[len(all)-1]
	require.Equal(t, "create configmaps", created.Name)
	want := fmt.Sprintf("00-%s-%s-01", created.SpanContext.TraceID(), created.SpanContext.SpanID())
	assert.Equal(t, want, seen.all[len(seen.all)-1].Get("Traceparent"))
}

func TestWithoutAnSDKThereAreNoSpansAndNoHeaders(t *testing.T) {
	server := katestest.NewServer(t)
	config, seen := rest.CopyConfig(server.Config), &headers{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		seen.next = next
		return seen
	})
	config.Wrap(otel.Propagate)
	c, err := kates.NewClientFromRESTConfig(config, kates.WithObserver(otel.Observer()))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Create(t.Context(), configMap("a"), nil))
	assert.Empty(t, seen.all[len(seen.all)-1].Get("Traceparent"))
}
