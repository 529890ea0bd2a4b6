package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/replay"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/bench/internal/stats"
)

// CrowdOptions says what is measured with a [replay.Crowd].
type CrowdOptions struct {
	Pods, Runs, Refreshes int
	Rate                  int // events per second
	Lasts                 time.Duration
	Settle                time.Duration // that a change has to reach a consumer
	Cores                 int           // of a consumer; 0: all
	Consumers             []consumer.Variant
	ProfileTo             string // folder for profiles of the first snapshots and of the events; "": none
	Note                  string
	// Serve starts a server in a process of its own.
	Serve func(ctx context.Context) (url string, end func(), err error)
	Log   io.Writer
}

// crowdReconcile is how long a reconciler takes during the events.
const crowdReconcile = 200 * time.Millisecond

// Crowd measures consumers in turn.
func Crowd(ctx context.Context, o CrowdOptions) (*report.Results, error) {
	r := &report.Results{Machine: machine(ctx), Note: o.Note, Runs: o.Runs}
	for run := 1; run <= o.Runs; run++ {
		for _, v := range rotated(o.Consumers, run-1) {
			if err := o.one(ctx, v, r, run); err != nil {
				return r, fmt.Errorf("%s, run %d: %w", v.Name, run, err)
			}
		}
	}
	r.Machine.LoadAfter = loadAverage()
	return r, nil
}

// one measures one consumer, on a server of its own.
func (o CrowdOptions) one(ctx context.Context, v consumer.Variant, r *report.Results, run int) (err error) {
	url, end, err := o.Serve(ctx)
	if err != nil {
		return err
	}
	defer end()
	kubeconfig, err := plainKubeconfig(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(kubeconfig))) }()
	var env []string
	if o.Cores > 0 {
		env = append(env, fmt.Sprintf("GOMAXPROCS=%d", o.Cores))
	}
	p, err := start(ctx, v, kubeconfig, env...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	var a consumer.Answer
	bootstrap := func() (err error) {
		a, err = p.ask(consumer.Command{Do: consumer.Bootstrap})
		return err
	}
	err = o.profiled(p, fmt.Sprintf("%s-%d", v.Name, run), bootstrap)
	if err != nil {
		return err
	}
	if a.Objects != o.Pods {
		return fmt.Errorf("the first snapshot has %d objects of %d", a.Objects, o.Pods)
	}
	add := func(m report.Metric, value float64) { r.Add(o.Pods, run, v.Name, m, value) }
	add(report.BootstrapTime, a.Seconds)
	add(report.BootstrapCPU, a.CPU)
	add(report.BootstrapPeak, a.PeakBytes/1e6)
	add(report.Received, a.Received/1e6)
	heap, err := p.ask(consumer.Command{Do: consumer.Heap})
	if err != nil {
		return err
	}
	add(report.HeapPerObject, heap.Bytes/float64(o.Pods))
	fmt.Fprintf(o.Log, "bench: %d pods, run %d of %d, %-18s first snapshot %.2f s, CPU %.2f s, peak RSS %.0f MB\n",
		o.Pods, run, o.Runs, v.Name, a.Seconds, a.CPU, a.PeakBytes/1e6)
	if v.BootstrapOnly {
		return nil
	}
	events, refresh, err := o.refreshes(ctx, p, url)
	if err != nil {
		return err
	}
	add(report.RefreshTime, 1e3*refresh)
	return o.churn(ctx, p, fmt.Sprintf("%s-%d-events", v.Name, run), url, events, add)
}

// profiled calls f, with profiles of that name if they are wanted.
func (o CrowdOptions) profiled(p *process, name string, f func() error) error {
	if o.ProfileTo == "" {
		return f()
	}
	return profiled(p, filepath.Join(o.ProfileTo, name), f)
}

// refreshes times snapshots after one change each. It returns how many events there were, and the
// median in seconds. A change that was not there in time was not refreshed by the snapshot that
// was timed: another one follows.
func (o CrowdOptions) refreshes(ctx context.Context, p *process, url string) (events int, median float64, err error) {
	var times []float64
	for late := time.Now().Add(o.Settle*time.Duration(o.Refreshes) + stalePeriod); len(times) < o.Refreshes; events++ {
		if _, err := p.ask(consumer.Command{Do: consumer.Drain}); err != nil {
			return events, 0, err
		}
		if err := change(ctx, url, "n=1"); err != nil {
			return events, 0, err
		}
		select {
		case <-time.After(o.Settle):
		case <-ctx.Done():
			return events, 0, ctx.Err()
		}
		marks := map[string]string{replay.CrowdKey(o.Pods, events): replay.CrowdMark(events)}
		a, err := p.ask(consumer.Command{Do: consumer.Refresh, Marks: marks})
		switch {
		case err != nil:
			return events, 0, err
		case a.Missing == 0:
			times = append(times, a.Seconds)
		case time.Now().After(late):
			return events, 0, fmt.Errorf("changes are not there after %s", o.Settle)
		}
	}
	return events, stats.Median(times), nil
}

// churn lets events come at their rate, and a reconciler follow them to the last one. It adds what
// an event has cost.
func (o CrowdOptions) churn(ctx context.Context, p *process, name, url string, before int, add func(report.Metric, float64)) error {
	n := int(int64(o.Rate) * int64(o.Lasts/time.Second))
	if n == 0 {
		return nil
	}
	last := before + n - 1
	marks := map[string]string{replay.CrowdKey(o.Pods, last): replay.CrowdMark(last)}
	var a consumer.Answer
	var late float64
	churn := func() (err error) {
		a, late, err = churned(ctx, p, crowdReconcile, marks, func(ctx context.Context) error {
			return change(ctx, url, fmt.Sprintf("rate=%d&seconds=%d", o.Rate, o.Lasts/time.Second))
		})
		return err
	}
	err := o.profiled(p, name, churn)
	switch {
	case err != nil:
		return err
	case a.Missing > 0:
		return fmt.Errorf("the last of %d events was not there after %.0f s", n, late)
	}
	add(report.EventCPU, 1e6*a.CPU/float64(n))
	add(report.EventAllocs, a.Allocations/float64(n))
	fmt.Fprintf(o.Log, "bench: %d pods, %-18s %.1f µs of CPU and %.2f allocations per event\n", o.Pods, name, 1e6*a.CPU/float64(n), a.Allocations/float64(n))
	return nil
}

// change asks a crowd for events.
func change(ctx context.Context, url, how string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+replay.ChangePath+"?"+how, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
