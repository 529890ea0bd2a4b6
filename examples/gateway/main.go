// Gateway is an ingress controller with nginx. It serves Ingresses and the Gateway API (Gateways
// and HTTPRoutes): one snapshot of everything becomes one configuration of nginx. README.md has a
// tour of the code.
//
// Without flags it needs no cluster: it has an API in memory, with an application whose endpoints
// are real servers on the loopback interface, and traffic of its own that it counts. With
// -kubeconfig or -context, or in a pod, the same program serves a real cluster. Folder deploy has
// its manifests, with the rights that it needs.
//
//	go -C examples/gateway run . -for 20s
//	curl -H 'Host: shop.example.com' http://127.0.0.1:8080/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kates-go/kates/examples/gateway/loops"
	"github.com/kates-go/kates/examples/gateway/report"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Who does not want to wait for the last requests sends a second signal.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// errUsage means that the message about the mistake is printed already.
var errUsage = errors.New("usage")

// run is the whole program: everything that it starts has ended when it returns.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if s.long > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(s.long, cancel).Stop()
	}
	watched := newObservers()
	defer watched.close()
	log := s.logger(stderr)
	place, err := s.connect(watched, log, stdout)
	if err != nil {
		return err
	}
	defer place.close()
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	web, err := s.open(dir, log, stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeNginx(web)) }()
	recorder, err := events.NewRecorder(ctx, place.client, translate.Controller)
	if err != nil {
		return err
	}
	defer recorder.Close()
	g := &loops.Gateway{
		Client: place.client, Clusters: place.clusters, Nginx: web, Reports: report.NewWriter(place.client, recorder), Logger: log,
		Queries: s.queries(), Translate: s.translate(), PublishService: s.publishService,
		Lease: kates.LeaderElection{Namespace: s.own, Name: "gateway"},
	}
	server, err := serve(s.listen, watched.handler(g, web, s.external))
	if err != nil {
		return err
	}
	defer server.close()
	if place.demo != nil {
		ctx, end := context.WithCancel(ctx)
		wait := place.demo.Start(ctx, shown(g, web, server))
		defer func() { end(); wait() }()
	}
	return g.Run(ctx)
}
