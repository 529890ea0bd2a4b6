// Package withkates is the gateway of examples/gateway, as its program runs it.
package withkates

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/examples/gateway/loops"
	"github.com/kates-go/kates/examples/gateway/report"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
)

// Run runs the gateway until ctx ends. Its Lease is in the namespace.
func Run(ctx context.Context, config *rest.Config, namespace string, nginx loops.Nginx, o translate.Options) error {
	log := slog.New(slog.DiscardHandler)
	client, err := kates.NewClientFromRESTConfig(config, kates.WithScheme(translate.Scheme()), kates.WithLogger(log))
	if err != nil {
		return err
	}
	defer client.Close()
	recorder, err := events.NewRecorder(ctx, client, translate.Controller)
	if err != nil {
		return err
	}
	defer recorder.Close()
	g := &loops.Gateway{
		Client: client, Nginx: nginx, Reports: report.NewWriter(client, recorder), Logger: log,
		Queries: translate.Queries("", ""), Translate: o,
		Lease: kates.LeaderElection{Namespace: namespace, Name: "gateway"},
	}
	return g.Run(ctx)
}
