package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/bench/internal/workload"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// ShardedOptions says what is measured of replicas that share the pods of a server.
type ShardedOptions struct {
	Pods, Namespaces, Runs int
	Replicas               []int // how many share, one number after the other
	Note                   string
	Log                    io.Writer
}

// Sharded measures one of so many replicas, on a server that sends each its part (KEP-5866). All
// replicas begin together. Each has its own process.
func Sharded(ctx context.Context, o ShardedOptions) (*report.Results, error) {
	r := &report.Results{Machine: machine(ctx), Note: o.Note, Runs: o.Runs}
	v, err := consumer.ByName("kates-sharded")
	if err != nil {
		return r, err
	}
	err = withCluster(ctx, func(c *apiserver.Cluster, kubeconfig string) error {
		r.Machine.Versions = withVersion(r.Machine.Versions, "kube-apiserver "+c.Version)
		load, err := workload.New(c.Config, o.Pods)
		if err != nil {
			return err
		}
		if err := load.FillEvenly(ctx, o.Namespaces); err != nil {
			return err
		}
		for run := 1; run <= o.Runs; run++ {
			replicas := slices.Clone(o.Replicas)
			if run%2 == 0 {
				slices.Reverse(replicas)
			}
			for _, n := range replicas {
				if err := o.share(ctx, v, kubeconfig, r, run, n); err != nil {
					return fmt.Errorf("%d replicas, run %d: %w", n, run, err)
				}
			}
		}
		return nil
	}, apiserver.WithFlags("feature-gates=ShardedListAndWatch=true"))
	r.Machine.LoadAfter = loadAverage()
	return r, err
}

// share lets n replicas share the pods, and adds the means of what they take.
func (o ShardedOptions) share(ctx context.Context, v consumer.Variant, kubeconfig string, r *report.Results, run, n int) (err error) {
	all := make([]*process, n)
	defer func() {
		for _, p := range all {
			if p != nil {
				err = errors.Join(err, p.stop())
			}
		}
	}()
	for i := range all {
		env := []string{fmt.Sprintf("%s=%d", consumer.MembersEnv, n), fmt.Sprintf("%s=replica-%d", consumer.IdentityEnv, i)}
		if all[i], err = start(ctx, v, kubeconfig, env...); err != nil {
			return err
		}
	}
	var heap, received, cpu float64
	begun, err := askAll(all, consumer.Bootstrap)
	if err != nil {
		return err
	}
	if err := o.settled(ctx, all); err != nil {
		return err
	}
	now, err := askAll(all, consumer.Heap)
	if err != nil {
		return err
	}
	for i := range all {
		heap, received, cpu = heap+now[i].Bytes, received+now[i].Received, cpu+begun[i].CPU
	}
	heap, received, cpu = heap/float64(n), received/float64(n), cpu/float64(n)
	r.AddAt(o.Pods, run, v.Name, report.HeapTotal, n, heap/1e6)
	r.AddAt(o.Pods, run, v.Name, report.Received, n, received/1e6)
	r.AddAt(o.Pods, run, v.Name, report.BootstrapCPU, n, cpu)
	fmt.Fprintf(o.Log, "bench: %d pods, run %d of %d, %d replicas: %.1f MB of heap, %.1f MB received, %.2f s of CPU each\n",
		o.Pods, run, o.Runs, n, heap/1e6, received/1e6, cpu)
	return nil
}

// settled waits until each pod is held once.
func (o ShardedOptions) settled(ctx context.Context, all []*process) error {
	for late := time.Now().Add(stalePeriod); ; {
		held := 0
		answers, err := askAll(all, consumer.Refresh)
		if err != nil {
			return err
		}
		for _, a := range answers {
			held += a.Objects
		}
		switch {
		case held == o.Pods:
			return nil
		case time.Now().After(late):
			return fmt.Errorf("%d pods are held, of %d", held, o.Pods)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// askAll asks all processes at the same time.
func askAll(all []*process, what consumer.What) ([]consumer.Answer, error) {
	answers := make([]consumer.Answer, len(all))
	var asked errgroup.Group
	for i, p := range all {
		asked.Go(func() (err error) {
			answers[i], err = p.ask(consumer.Command{Do: what})
			return err
		})
	}
	return answers, asked.Wait()
}
