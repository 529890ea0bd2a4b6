// Pipeline promotes versions across clusters. A Pipeline (crd.yaml) names stages, and each stage
// names objects of any kinds in any clusters. When all objects of a stage have the version and are
// ready, the next stage gets it. Package promote does that in 150 lines; this is the program
// around it.
//
// Without flags it needs no cluster: it has three in memory, and somebody who publishes versions,
// one of them broken, and takes a cluster away. With -kubeconfig the Pipelines are in the cluster
// of its current context, and all its contexts are the fleet, or those that -contexts names. The
// program needs the rights to list and watch pipelines.pipeline.kates.io and to patch their
// status; and in each cluster to get, list, watch and patch what the targets name.
//
//	go run ./examples/pipeline -for 10s
//
//	kubectl apply -f examples/pipeline/crd.yaml
//	go run ./examples/pipeline -kubeconfig ~/.kube/config -contexts test,east,west &
//	kubectl apply -f examples/pipeline/example.yaml
//	kubectl get pipelines --watch
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/examples/pipeline/promote"
	"github.com/kates-go/kates/examples/probes"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/source"
	"github.com/kates-go/kates/kates"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

// errUsage means that the message about the mistake is printed already.
var errUsage = errors.New("usage")

type settings struct {
	home     kates.ClientConfig
	contexts []string
	listen   string
	long     time.Duration
}

func (s settings) simulated() bool { return s.home == (kates.ClientConfig{}) }

func parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.home.Kubeconfig, "kubeconfig", "", "the Pipelines are in the cluster of this kubeconfig")
	flags.StringVar(&s.home.Context, "context", "", "they are in the cluster of this context of it")
	contexts := flags.String("contexts", "", "the clusters of the targets: contexts of the kubeconfig, with commas (none: all)")
	flags.StringVar(&s.listen, "listen", "", probes.Flag)
	flags.DurationVar(&s.long, "for", 0, "end after so long (0: at an interrupt)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, errUsage
	}
	if *contexts != "" {
		s.contexts = strings.Split(*contexts, ",")
	}
	problem := ""
	switch {
	case flags.NArg() > 0:
		problem = fmt.Sprintf("unexpected argument %q", flags.Arg(0))
	case s.long < 0:
		problem = fmt.Sprintf("-for %s: there is no such time", s.long)
	case s.simulated() && s.contexts != nil:
		problem = "-contexts needs -kubeconfig: the clusters in memory have no contexts"
	}
	if problem != "" {
		fmt.Fprintln(stderr, "pipeline:", problem)
		return s, errUsage
	}
	return s, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
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
	home, clusters, stop, err := connect(s, stderr)
	if err != nil {
		return err
	}
	defer stop()
	_, silence, err := probes.Serve(s.listen, clusters)
	if err != nil {
		return err
	}
	defer silence()
	p := &promote.Promoter{Home: home, Fleet: clusters, Log: logger(stdout)}
	pipelines, err := controller.New(home, "pipeline", p.Reconcile, append(promote.Queries(), kates.WithWorkers(4))...)
	if err != nil {
		return err
	}
	p.Targets = clusters.Targets(fleet.TargetOptions{Activate: pipelines.Trigger})
	defer p.Targets.Close()
	if s.simulated() {
		fmt.Fprintln(stdout, "Somebody publishes versions of a shop, in three pretend clusters.")
	}
	err = pipelines.Run(ctx)
	if unknown := new(kates.UnknownKindError); errors.As(err, &unknown) {
		return fmt.Errorf("%w: kubectl apply -f examples/pipeline/crd.yaml", err)
	}
	return err
}

// connect returns a client of the Pipelines' cluster, and the fleet of their targets.
func connect(s settings, stderr io.Writer) (home *kates.Client, clusters *fleet.Fleet, stop func(), err error) {
	interval := kates.WithInterval(50 * time.Millisecond)
	if s.simulated() {
		return simulate(interval, kates.WithLogger(logger(stderr)))
	}
	log := logger(stderr)
	home, err = kates.NewClient(s.home, interval, kates.WithLogger(log))
	if err != nil {
		return nil, nil, nil, err
	}
	clusters, err = fleet.New(fleet.Options{
		Sources: []fleet.Source{source.Contexts(s.home.Kubeconfig, s.contexts...)},
		Client:  []kates.Option{interval, kates.WithLogger(log)}, Home: home, Logger: logr.FromSlogHandler(log.Handler()),
	})
	if err != nil {
		home.Close()
		return nil, nil, nil, err
	}
	return home, clusters, func() { clusters.Close(); home.Close() }, nil
}

// logger prints the time since the start instead of the date.
func logger(w io.Writer) *slog.Logger {
	start := time.Now()
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) > 0:
		case a.Key == slog.TimeKey:
			return slog.String(a.Key, fmt.Sprintf("%.1fs", time.Since(start).Seconds()))
		case a.Key == slog.LevelKey && a.Value.Any() == slog.LevelInfo:
			return slog.Attr{}
		}
		return a
	}}))
}
