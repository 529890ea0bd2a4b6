// Command spans gives the spans of a client to OpenTelemetry.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/otel"
)

// provider notes the names of spans.
type provider struct {
	embedded.TracerProvider
	started chan string
}

func (p provider) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{provider: p} }

type tracer struct {
	embedded.Tracer
	provider provider
}

func (t tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.provider.started <- name
	return noop.NewTracerProvider().Tracer("").Start(ctx, name, options...)
}

func main() {
	server, err := katestest.StartServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	spans := provider{started: make(chan string, 100)}
	client, err := kates.NewClientFromRESTConfig(server.Config, kates.WithObserver(otel.Observer(otel.WithTracerProvider(spans))))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	made := &kates.ConfigMap{}
	made.Namespace, made.Name = "default", "settings"
	if err := client.Create(context.Background(), made, nil); err != nil {
		log.Fatal(err)
	}
	for len(spans.started) > 0 {
		if name := <-spans.started; strings.HasPrefix(name, "create") {
			fmt.Println(name)
		}
	}
	// Output: create configmaps
}
