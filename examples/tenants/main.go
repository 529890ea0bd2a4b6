// Tenants makes one output per tenant. A tenant is the set of namespaces with one value of a
// label, with their quotas and network policies. For each tenant the program computes what it may
// use, and which of its namespaces are not isolated. It does so when something of that tenant
// changes, and for all tenants when the nodes change, which belong to all. A tenant that cannot
// be computed does not delay the others.
//
// Without flags it needs no cluster: it has an API in memory, with tenants that change all the
// time. With -kubeconfig or -context the same program runs on a real cluster, where it only
// reads. It needs the rights to list and watch namespaces, resourcequotas and networkpolicies,
// and nodes if possible.
//
//	go run ./examples/tenants -for 10s
//	kubectl label namespace shop tenant=red && go run ./examples/tenants -kubeconfig ~/.kube/config
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
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

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
		fmt.Fprintln(os.Stderr, "tenants:", err)
		os.Exit(1)
	}
}

// errUsage means that the message about the mistake is printed already.
var errUsage = errors.New("usage")

type settings struct {
	cluster kates.ClientConfig
	label   string
	listen  string
	workers int
	long    time.Duration
}

func parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("tenants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.cluster.Kubeconfig, "kubeconfig", "", "run on the cluster of this kubeconfig")
	flags.StringVar(&s.cluster.Context, "context", "", "run on the cluster of this context of the kubeconfig")
	flags.StringVar(&s.label, "label", "tenant", "the label whose value is the tenant")
	flags.StringVar(&s.listen, "listen", "", probes.Flag)
	flags.IntVar(&s.workers, "workers", 4, "how many tenants to compute at the same time")
	flags.DurationVar(&s.long, "for", 0, "end after so long (0: at an interrupt)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, errUsage
	}
	problem := ""
	switch wrong := validation.IsQualifiedName(s.label); {
	case flags.NArg() > 0:
		problem = fmt.Sprintf("unexpected argument %q", flags.Arg(0))
	case len(wrong) > 0:
		problem = fmt.Sprintf("-label %q: %s", s.label, wrong[0])
	case s.workers < 1:
		problem = fmt.Sprintf("-workers %d: there must be one at least", s.workers)
	case s.long < 0:
		problem = fmt.Sprintf("-for %s: there is no such time", s.long)
	}
	if problem != "" {
		fmt.Fprintln(stderr, "tenants:", problem)
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
	client, stop, err := connect(s, stderr)
	if err != nil {
		return err
	}
	defer stop()
	_, silence, err := probes.Serve(s.listen, client)
	if err != nil {
		return err
	}
	defer silence()
	p := &program{out: stdout, label: s.label, start: time.Now()}
	p.intro(s.cluster == (kates.ClientConfig{}))
	// This context ends the watches after the program has asked what is missing.
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { p.ending(client.Ready()); end() })()
	return kates.RunEach(running, client, p.tenant, append(queries(s.label), kates.WithWorkers(s.workers), kates.WithOnError(p.failed))...)
}

// connect returns a client of the cluster that the flags name, or of a simulated one.
func connect(s settings, stderr io.Writer) (client *kates.Client, stop func(), err error) {
	interval := kates.WithInterval(100 * time.Millisecond)
	if s.cluster == (kates.ClientConfig{}) {
		// The output shows the failures.
		return simulate(s.label, interval, kates.WithLogger(slog.New(slog.DiscardHandler)))
	}
	client, err = kates.NewClient(s.cluster, interval, kates.WithLogger(slog.New(slog.NewTextHandler(stderr, nil))))
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}
