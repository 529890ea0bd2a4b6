// Package campaign runs the consumers, one process after the other, on a real API server of a
// given size, changes what that holds, and collects what they measure. Within a run all
// consumers meet the same server; runs are repeated, each starting with another consumer.
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
	"github.com/kates-go/kates/e2e/cluster"
)

// Options says how much is measured. All fields must be set but Changes, Cores and Note.
type Options struct {
	Sizes     []int // pods
	Runs      int
	Consumers []consumer.Variant

	Updates   int // of churn
	Refreshes int // per run, of one change each
	Latencies int // writes per run
	// SlowUpTo is up to how many pods slow consumers have everything measured in every run; beyond, their start and
	// their refreshes in the first.
	SlowUpTo int
	// Budget bounds refreshes and latencies of one consumer in a run: slow ones have fewer samples.
	Budget time.Duration
	// Settle is how long a change has to reach a consumer's process before its refresh is timed.
	Settle time.Duration

	// Changes are the numbers of changes that one refresh takes in, measured at the size ChangesAt.
	Changes   []int
	ChangesAt int
	// Cores are the values of GOMAXPROCS with which Events replayed events are taken in.
	Cores  []int
	Events int

	Note string
	// Strict has the results checked for what should be so on any machine.
	Strict bool
	Log    io.Writer
}

const (
	reconcile   = 200 * time.Millisecond // of a slow reconciler
	stalePeriod = 60 * time.Second       // after which what is not there counts as stale
	awaitPeriod = 120 * time.Second      // for one change to become visible
)

// Run measures everything. An error of any consumer ends it; the results are those up to then.
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

// size measures everything at one size, on a server of its own.
func (o Options) size(ctx context.Context, r *report.Results, pods int) error {
	return withCluster(ctx, func(c *cluster.Cluster, kubeconfig string) error {
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

// rotated is the list from its n-th place on, and every other time from there backwards: each run
// starts with another consumer, and none is always after the same one.
func rotated(all []consumer.Variant, n int) []consumer.Variant {
	if len(all) == 0 {
		return nil
	}
	backwards := n%2 == 1
	if backwards {
		n++ // the n-th place is the last one, before it is turned round
	}
	at := n % len(all)
	order := slices.Concat(all[at:], all[:at])
	if backwards {
		slices.Reverse(order)
	}
	return order
}

// withCluster runs f with a server of its own, and the file by which others find it.
func withCluster(ctx context.Context, f func(*cluster.Cluster, string) error) (err error) {
	dir, err := os.MkdirTemp("", "kates-bench-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := cluster.Start(ctx)
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
