// Package campaign runs the consumers on a real API server of a given size, one process after the
// other. It changes the server's objects and collects what the consumers measure. Within a run
// all consumers use the same server. Runs are repeated, and each starts with another consumer.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/bench/internal/workload"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// Options says how much is measured. All fields must be set except Changes, Cores and Note.
type Options struct {
	Sizes     []int // numbers of pods
	Runs      int
	Consumers []consumer.Variant

	Updates   int // in the churn phase
	Refreshes int // per run, after one change each
	Latencies int // writes per run
	// SlowUpTo is the largest number of pods at which slow consumers are measured completely in
	// every run. Beyond it only their start and refreshes are measured, in the first run.
	SlowUpTo int
	// Budget bounds the time for refreshes and latencies of one consumer in a run. Slow consumers
	// have fewer samples.
	Budget time.Duration
	// Settle is how long a change has to reach a consumer's process before its refresh is timed.
	Settle time.Duration

	// Changes are the numbers of changes in one refresh, measured at the size ChangesAt.
	Changes   []int
	ChangesAt int
	// Cores are the values of GOMAXPROCS with which consumers read Events replayed events.
	Cores  []int
	Events int

	Note string
	// Strict checks that the results have what every machine must achieve.
	Strict bool
	Log    io.Writer
}

const (
	reconcile   = 200 * time.Millisecond // of the slow reconciler
	stalePeriod = 60 * time.Second       // objects that are still missing after this are stale
	awaitPeriod = 120 * time.Second      // for one change to become visible
)

// Run measures everything. An error of any consumer ends it; it then returns the results so far.
func Run(ctx context.Context, o Options) (*report.Results, error) {
	r := &report.Results{
		Machine: machine(ctx), Note: o.Note, Runs: o.Runs, Updates: o.Updates, ChangesAt: o.ChangesAt,
	}
	for _, pods := range o.Sizes {
		if err := o.size(ctx, r, pods); err != nil {
			return r, fmt.Errorf("at %d pods: %w", pods, err)
		}
	}
	if len(o.Cores) > 0 {
		if err := o.cores(ctx, r); err != nil {
			return r, fmt.Errorf("replay events: %w", err)
		}
	}
	r.Machine.LoadAfter = loadAverage()
	return r, nil
}

// size measures everything at one size, on its own server.
func (o Options) size(ctx context.Context, r *report.Results, pods int) error {
	return withCluster(ctx, func(c *apiserver.Cluster, kubeconfig string) error {
		r.Machine.Versions = withVersion(r.Machine.Versions, "kube-apiserver "+c.Version)
		load, err := workload.New(c.Config, pods)
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := load.Fill(ctx); err != nil {
			return err
		}
		sizes, err := load.Measure(ctx)
		if err != nil {
			return err
		}
		r.Sizes = append(r.Sizes, report.Size{Pods: pods, JSONBytes: sizes.JSON, ProtobufBytes: sizes.Protobuf})
		o.log("%d pods of %d bytes as JSON, %d as protobuf, filled in %.0f s", pods, sizes.JSON, sizes.Protobuf, time.Since(begun).Seconds())
		for run := 1; run <= o.Runs; run++ {
			for _, v := range rotated(o.Consumers, run-1) {
				t := &trial{Options: o, results: r, load: load, variant: v, run: run}
				if t.spared() && run > 1 {
					continue
				}
				if err := t.measure(ctx, kubeconfig); err != nil {
					return fmt.Errorf("run %d: %w", run, err)
				}
			}
		}
		return nil
	})
}

// rotated returns the list from its n-th place on, or backwards from there in every other run. So
// each run starts with another consumer, and no consumer always follows the same one.
func rotated[T any](all []T, n int) []T {
	if len(all) == 0 {
		return nil
	}
	backwards := n%2 == 1
	if backwards {
		n++ // before reversal the n-th place is the last one
	}
	at := n % len(all)
	order := slices.Concat(all[at:], all[:at])
	if backwards {
		slices.Reverse(order)
	}
	return order
}

// withCluster runs f with a server of its own, and its kubeconfig file.
func withCluster(ctx context.Context, f func(*apiserver.Cluster, string) error, options ...apiserver.Option) (err error) {
	dir, err := os.MkdirTemp("", "kates-bench-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := apiserver.Start(ctx, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	content, err := c.AdminKubeconfig()
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return err
	}
	return f(c, kubeconfig)
}

func (o Options) log(format string, args ...any) {
	fmt.Fprintf(o.Log, "bench: "+format+"\n", args...)
}

func withVersion(versions []string, v string) []string {
	if slices.Contains(versions, v) {
		return versions
	}
	return append(versions, v)
}
