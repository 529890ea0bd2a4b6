// Configmapgen is an operator to start yours from. It makes ConfigMaps from ConfigTemplates
// (crd.yaml) and from the Secrets that their templates refer to. Package generator does that for
// one ConfigTemplate in 100 lines; this is the program around it.
//
// Without flags it needs no cluster: it has an API in memory, and a user who changes things all
// the time. With -kubeconfig or -context the same program runs on a real cluster. It needs the
// rights to list and watch configtemplates.configmapgen.kates.io, configmaps and secrets, to
// patch configtemplates and configtemplates/status, to update configtemplates/finalizers, and to
// create, patch and delete configmaps.
//
//	go run ./examples/configmapgen -for 10s
//
//	kubectl apply -f examples/configmapgen/crd.yaml
//	go run ./examples/configmapgen -kubeconfig ~/.kube/config &
//	kubectl apply -f examples/configmapgen/example.yaml
//	kubectl get configtemplates,configmaps
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
	"path/filepath"
	"syscall"
	"time"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/examples/configmapgen/generator"
	"github.com/kates-go/kates/examples/probes"
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
		fmt.Fprintln(os.Stderr, "configmapgen:", err)
		os.Exit(1)
	}
}

// errUsage means that the message about the mistake is printed already.
var errUsage = errors.New("usage")

type settings struct {
	cluster   kates.ClientConfig
	namespace string
	registry  string
	listen    string
	workers   int
	long      time.Duration
}

func (s settings) simulated() bool { return s.cluster == (kates.ClientConfig{}) }

func parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("configmapgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.cluster.Kubeconfig, "kubeconfig", "", "run on the cluster of this kubeconfig")
	flags.StringVar(&s.cluster.Context, "context", "", "run on the cluster of this context of the kubeconfig")
	flags.StringVar(&s.namespace, "namespace", "", "reconcile in this namespace only (rights in it suffice)")
	flags.StringVar(&s.registry, "registry", filepath.Join(os.TempDir(), "configmapgen.json"),
		"the file that stands for something outside of the cluster (in a pretend cluster: one that is removed)")
	flags.StringVar(&s.listen, "listen", "", probes.Flag)
	flags.IntVar(&s.workers, "workers", 4, "how many ConfigTemplates to reconcile at the same time")
	flags.DurationVar(&s.long, "for", 0, "end after so long (0: at an interrupt)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, errUsage
	}
	problem := ""
	switch {
	case flags.NArg() > 0:
		problem = fmt.Sprintf("unexpected argument %q", flags.Arg(0))
	case s.workers < 1:
		problem = fmt.Sprintf("-workers %d: there must be one at least", s.workers)
	case s.long < 0:
		problem = fmt.Sprintf("-for %s: there is no such time", s.long)
	}
	if problem != "" {
		fmt.Fprintln(stderr, "configmapgen:", problem)
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
	client, stop, err := connect(&s, stderr)
	if err != nil {
		return err
	}
	defer stop()
	_, silence, err := probes.Serve(s.listen, client)
	if err != nil {
		return err
	}
	defer silence()
	registry := &generator.FileRegistry{Path: s.registry}
	c, err := operator(client, registry, s, logger(stdout))
	if err != nil {
		return err
	}
	if s.simulated() {
		fmt.Fprintln(stdout, "Somebody uses configmapgen in a pretend cluster.")
	} else {
		fmt.Fprintln(stdout, "What is outside of the cluster is in", s.registry)
	}
	if err := c.Run(ctx); err != nil {
		if unknown := new(kates.UnknownKindError); errors.As(err, &unknown) {
			return fmt.Errorf("%w: kubectl apply -f examples/configmapgen/crd.yaml", err)
		}
		return err
	}
	entries, err := registry.Entries()
	fmt.Fprintln(stdout, "Outside of the cluster there is:", entries)
	return err
}

// operator is the operator itself. It runs when its Run is called.
func operator(client *kates.Client, registry generator.Registry, s settings, log *slog.Logger) (*controller.Controller[generator.Parts], error) {
	g := &generator.Generator{Client: client, Registry: registry, Log: log}
	options := append(generator.Queries(s.namespace), kates.WithWorkers(s.workers),
		kates.WithQuietOwnWrites()) // own writes do not wake the program
	return controller.New(client, "configmapgen", g.Reconcile, options...)
}

// connect returns a client of the cluster that the flags name, or of a simulated one.
func connect(s *settings, stderr io.Writer) (client *kates.Client, stop func(), err error) {
	options := []kates.Option{kates.WithInterval(50 * time.Millisecond), kates.WithLogger(logger(stderr))}
	if s.simulated() {
		folder, err := os.MkdirTemp("", "configmapgen-*")
		if err != nil {
			return nil, nil, err
		}
		s.registry = filepath.Join(folder, "registry.json")
		client, end, err := simulate(options...)
		if err != nil {
			return nil, nil, errors.Join(err, os.RemoveAll(folder))
		}
		return client, func() { end(); _ = os.RemoveAll(folder) }, nil
	}
	scheme, err := generator.Scheme()
	if err != nil {
		return nil, nil, err
	}
	client, err = kates.NewClient(s.cluster, append(options, kates.WithScheme(scheme))...)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Dir(s.registry)); err != nil {
		client.Close()
		return nil, nil, fmt.Errorf("-registry %s: %w", s.registry, err)
	}
	return client, client.Close, nil
}

// logger prints the time since the start instead of the date.
func logger(w io.Writer) *slog.Logger {
	start := time.Now()
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			return slog.String(a.Key, fmt.Sprintf("%.1fs", time.Since(start).Seconds()))
		}
		return a
	}}))
}
