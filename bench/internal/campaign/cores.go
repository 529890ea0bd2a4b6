package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/replay"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// A real server with writers on the same machine makes some hundreds of events a second, far
// fewer than a consumer can read. So the events are encoded in advance and replayed as fast as
// they are read.

// replayed are the consumers whose rate is measured.
var replayed = map[string]bool{"kates": true, "kates-untyped": true, "informers": true, "dynamic": true}

const (
	// replayObjects is the number of objects of each kind.
	replayObjects = 1000
	// replayReconcile is short, because it is the resolution of the measurement.
	replayReconcile = 20 * time.Millisecond
)

// cores measures how many events a second the consumers read with a number of cores.
func (o Options) cores(ctx context.Context, r *report.Results) error {
	return withCluster(ctx, func(c *apiserver.Cluster, _ string) error {
		for run := 1; run <= o.Runs; run++ {
			for _, v := range rotated(o.Consumers, run-1) {
				if !replayed[v.Name] {
					continue
				}
				for _, n := range o.Cores {
					if err := o.flood(ctx, r, c, v, run, n); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// flood measures one consumer with a number of cores.
func (o Options) flood(ctx context.Context, r *report.Results, c *apiserver.Cluster, v consumer.Variant, run, cores int) (err error) {
	server, err := replay.Start(c.Config, replayObjects, o.Events)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	kubeconfig, err := plainKubeconfig(server.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(kubeconfig))) }()
	p, err := start(ctx, v, kubeconfig, fmt.Sprintf("GOMAXPROCS=%d", cores))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if _, err := p.ask(consumer.Command{Do: consumer.Bootstrap}); err != nil {
		return err
	}
	var begun time.Time
	a, _, err := churned(ctx, p, replayReconcile, server.Marks(), func(context.Context) error {
		begun = time.Now()
		server.Go()
		return nil
	})
	if err != nil {
		return err
	}
	if a.Missing > 0 {
		return fmt.Errorf("%s does not show %d objects as the replay left them", v.Name, a.Missing)
	}
	took := float64(a.UnixNano-begun.UnixNano()) / 1e9
	r.AddAt(0, run, v.Name, report.EventRate, cores, float64(o.Events)/took)
	r.AddAt(0, run, v.Name, report.EventCPU, cores, 1e6*a.CPU/float64(o.Events))
	o.log("replay on %d cores, run %d of %d, %-18s %7.0f events/s", cores, run, o.Runs, v.Name, float64(o.Events)/took)
	return nil
}

// plainKubeconfig writes a kubeconfig file for a server without authentication, in a new folder.
func plainKubeconfig(url string) (string, error) {
	dir, err := os.MkdirTemp("", "kates-bench-*")
	if err != nil {
		return "", err
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["replay"] = &clientcmdapi.Cluster{Server: url}
	c.Contexts["replay"] = &clientcmdapi.Context{Cluster: "replay"}
	c.CurrentContext = "replay"
	path := filepath.Join(dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*c, path)
}
