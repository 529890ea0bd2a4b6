package campaign

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/workload"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// Profile writes CPU and heap profiles of the first consumer at bootstrap and in churn to the
// folder. It uses the last of the sizes.
func Profile(ctx context.Context, o Options, dir string) error {
	v := o.Consumers[0]
	return withCluster(ctx, func(c *apiserver.Cluster, kubeconfig string) (err error) {
		load, err := workload.New(c.Config, o.Sizes[len(o.Sizes)-1])
		if err != nil {
			return err
		}
		if err := load.Fill(ctx); err != nil {
			return err
		}
		p, err := start(ctx, v, kubeconfig)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		var a consumer.Answer
		err = profiled(p, filepath.Join(dir, "bootstrap"), func() (err error) {
			a, err = p.ask(consumer.Command{Do: consumer.Bootstrap})
			return err
		})
		if err != nil {
			return err
		}
		o.log("bootstrap: %.2f CPU s, peak %.0f MB", a.CPU, a.PeakBytes/1e6)
		err = profiled(p, filepath.Join(dir, "churn"), func() (err error) {
			changes := load.Spread("profile", 0, o.Updates)
			a, _, err = churned(ctx, p, reconcile, workload.MarksOf(changes), func(ctx context.Context) error {
				return load.Change(ctx, changes)
			})
			return err
		})
		if err == nil && a.Missing > 0 {
			err = fmt.Errorf("%d objects are stale", a.Missing)
		}
		o.log("churn: %.2f CPU s, %d snapshots", a.CPU, a.Snapshots)
		return err
	})
}

func profiled(p *process, path string, f func() error) error {
	if _, err := p.ask(consumer.Command{Do: consumer.Profile, Path: path}); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	_, err := p.ask(consumer.Command{Do: consumer.EndProfile})
	return err
}
