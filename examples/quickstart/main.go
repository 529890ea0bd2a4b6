// Quickstart watches the rollout of an application. It turns services, endpoint slices,
// deployments and a custom kind into one small routing table.
//
// Without flags it needs no cluster: it has an API in memory, and an application that changes all
// the time. With -kubeconfig, -context or -namespace the same program runs on a real cluster.
// There it writes one ConfigMap and removes it at the end.
//
//	go run ./examples/quickstart -for 10s
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

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/examples/probes"
	"github.com/kates-go/kates/kates"
)

// reconcile is how long the program pretends to work on a snapshot.
const reconcile = 700 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

type program struct {
	client     *kates.Client
	proof      *kates.Snapshots[Proof]
	namespace  string // where it watches and publishes
	cluster    *simulation
	out        *printer
	generation int
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var config kates.ClientConfig
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "run on the cluster of this kubeconfig")
	flags.StringVar(&config.Context, "context", "", "run on the cluster of this context of the kubeconfig")
	flags.StringVar(&config.Namespace, "namespace", "", "run on a real cluster, in this namespace")
	listen := flags.String("listen", "", probes.Flag)
	long := flags.Duration("for", 0, "end after so long (0: at an interrupt)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "quickstart: unexpected argument %q\n", flags.Arg(0))
		return errUsage
	}
	if *long > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(*long, cancel).Stop()
	}
	p := &program{out: newPrinter(stdout)}
	if err := p.connect(config); err != nil {
		return err
	}
	defer p.close()
	_, silence, err := probes.Serve(*listen, p.client)
	if err != nil {
		return err
	}
	defer silence()
	return p.watch(ctx)
}

// connect makes a client of the cluster that the flags name, or of a simulated one.
func (p *program) connect(config kates.ClientConfig) (err error) {
	options := []kates.Option{
		kates.WithInterval(250 * time.Millisecond),
		kates.WithQuietOwnWrites(), // own writes do not wake the program
		kates.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
	}
	if config == (kates.ClientConfig{}) {
		p.namespace = "shop"
		if p.cluster, err = startSimulation(p.namespace, options...); err == nil {
			p.client = p.cluster.client
		}
		return err
	}
	p.namespace = config.Namespace
	if p.namespace == "" {
		p.namespace = "default"
	}
	p.client, err = kates.NewClient(config, options...)
	return err
}

// watch is the main part of the program: a loop over snapshots. It ends when ctx does.
func (p *program) watch(ctx context.Context) error {
	snapshots, err := kates.Watch[Snapshot](ctx, p.client, queries(p.namespace)...)
	if err != nil {
		return err
	}
	p.proof, err = kates.Watch[Proof](ctx, p.client, queries(p.namespace)[4])
	if err != nil {
		return err
	}
	p.out.intro(p.cluster != nil, p.namespace)
	for range snapshots.Changed() {
		var snap Snapshot
		start := time.Now()
		changed, err := snapshots.Update(ctx, &snap)
		cost := time.Since(start)
		if err == nil && changed {
			rows := routingTable(&snap)
			p.out.snapshot(&snap, rows, cost, p.cluster.written())
			err = p.publish(ctx, rows)
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		slow(ctx)
	}
	p.out.outro()
	return nil
}

// slow is the part of a reconcile that takes time.
func slow(ctx context.Context) {
	select {
	case <-time.After(reconcile):
	case <-ctx.Done():
	}
}

// close ends everything, and leaves a real cluster as it was.
func (p *program) close() {
	if p.cluster != nil {
		p.cluster.stop()
		return
	}
	defer p.client.Close()
	if p.generation == 0 { // it has published nothing
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cm := &corev1.ConfigMap{}
	cm.Name, cm.Namespace = published, p.namespace
	if err := p.client.Delete(ctx, cm, nil); err != nil && !kates.IsNotFound(err) {
		fmt.Fprintln(os.Stderr, "quickstart: could not remove what it published:", err)
	}
}
