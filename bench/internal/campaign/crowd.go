package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/replay"
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
	ProfileTo             string // folder for profiles of the first snapshots, and of the events; "": none
	// Serve starts a server in a process of its own.
	Serve func(ctx context.Context) (url string, end func(), err error)
	Log   io.Writer
}

// crowdReconcile is how long a reconciler takes during the events.
const crowdReconcile = 200 * time.Millisecond

// crowdRow is what one consumer did, a sample for each run.
type crowdRow struct {
	first, cpu, peak, heap, refresh, events, allocations []float64
}

// Crowd measures consumers in turn, and returns a table of medians.
func Crowd(ctx context.Context, o CrowdOptions) (string, error) {
	rows := map[string]*crowdRow{}
	for run := 1; run <= o.Runs; run++ {
		for _, v := range rotated(o.Consumers, run-1) {
			if rows[v.Name] == nil {
				rows[v.Name] = &crowdRow{}
			}
			if err := o.one(ctx, v, rows[v.Name]); err != nil {
				return "", fmt.Errorf("%s, run %d: %w", v.Name, run, err)
			}
		}
	}
	return o.table(rows), nil
}

// table has medians. If events came, the CPU per event is also compared with that of the first
// consumer, run by run: what else runs on the machine changes from run to run.
func (o CrowdOptions) table(rows map[string]*crowdRow) string {
	var table strings.Builder
	fmt.Fprintf(&table, "| %d pods | first snapshot | CPU | peak RSS | heap per pod | refresh after 1 change | CPU per event | allocations per event |\n|---|--:|--:|--:|--:|--:|--:|--:|\n", o.Pods)
	for _, v := range o.Consumers {
		r := rows[v.Name]
		fmt.Fprintf(&table, "| %s | %.2f s | %.2f s | %.0f MB | %.0f B | %.0f µs | %.1f µs | %.2f |\n", v.Title,
			stats.Median(r.first), stats.Median(r.cpu), stats.Median(r.peak)/1e6, stats.Median(r.heap),
			1e6*stats.Median(r.refresh), 1e6*stats.Median(r.events), stats.Median(r.allocations))
	}
	if o.Rate == 0 || o.Lasts == 0 {
		return table.String()
	}
	first := o.Consumers[0]
	for _, v := range o.Consumers[1:] {
		var ratios []float64
		for run, of := range rows[first.Name].events {
			ratios = append(ratios, rows[v.Name].events[run]/of)
		}
		least, most := stats.Spread(ratios)
		fmt.Fprintf(&table, "\nCPU per event of %s to that of %s, by runs: median %.3f, least %.3f, most %.3f.\n", v.Title, first.Title, stats.Median(ratios), least, most)
	}
	return table.String()
}

// one measures one consumer, on a server of its own.
func (o CrowdOptions) one(ctx context.Context, v consumer.Variant, r *crowdRow) (err error) {
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
	if err := o.profiled(p, fmt.Sprintf("%s-%d", v.Name, len(r.first)+1), bootstrap); err != nil {
		return err
	}
	if a.Objects != o.Pods {
		return fmt.Errorf("the first snapshot has %d objects of %d", a.Objects, o.Pods)
	}
	r.first, r.cpu, r.peak = append(r.first, a.Seconds), append(r.cpu, a.CPU), append(r.peak, a.PeakBytes)
	heap, err := p.ask(consumer.Command{Do: consumer.Heap})
	if err != nil {
		return err
	}
	r.heap = append(r.heap, heap.Bytes/float64(o.Pods))
	events, err := o.refreshes(ctx, p, url, r)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Log, "bench: %d pods, %-18s first snapshot %.2f s, CPU %.2f s, peak RSS %.0f MB\n", o.Pods, v.Name, a.Seconds, a.CPU, a.PeakBytes/1e6)
	return o.churn(ctx, p, v.Name, url, events, r)
}

// profiled calls f, with profiles of that name if they are wanted.
func (o CrowdOptions) profiled(p *process, name string, f func() error) error {
	if o.ProfileTo == "" {
		return f()
	}
	return profiled(p, filepath.Join(o.ProfileTo, name), f)
}

// refreshes times snapshots after one change each. It returns how many events there were. A change
// that was not there in time was not refreshed by the snapshot that was timed: another one
// follows.
func (o CrowdOptions) refreshes(ctx context.Context, p *process, url string, r *crowdRow) (events int, err error) {
	var times []float64
	for late := time.Now().Add(o.Settle*time.Duration(o.Refreshes) + stalePeriod); len(times) < o.Refreshes; events++ {
		if _, err := p.ask(consumer.Command{Do: consumer.Drain}); err != nil {
			return events, err
		}
		if err := change(ctx, url, "n=1"); err != nil {
			return events, err
		}
		select {
		case <-time.After(o.Settle):
		case <-ctx.Done():
			return events, ctx.Err()
		}
		marks := map[string]string{replay.CrowdKey(o.Pods, events): replay.CrowdMark(events)}
		a, err := p.ask(consumer.Command{Do: consumer.Refresh, Marks: marks})
		switch {
		case err != nil:
			return events, err
		case a.Missing == 0:
			times = append(times, a.Seconds)
		case time.Now().After(late):
			return events, fmt.Errorf("changes are not there after %s", o.Settle)
		}
	}
	r.refresh = append(r.refresh, stats.Median(times))
	return events, nil
}

// churn lets events come at their rate, and a reconciler follow them to the last one.
func (o CrowdOptions) churn(ctx context.Context, p *process, name, url string, before int, r *crowdRow) error {
	n := int(int64(o.Rate) * int64(o.Lasts/time.Second))
	if n == 0 {
		r.events, r.allocations = append(r.events, 0), append(r.allocations, 0)
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
	err := o.profiled(p, fmt.Sprintf("%s-%d-events", name, len(r.events)+1), churn)
	switch {
	case err != nil:
		return err
	case a.Missing > 0:
		return fmt.Errorf("the last of %d events was not there after %.0f s", n, late)
	}
	r.events, r.allocations = append(r.events, a.CPU/float64(n)), append(r.allocations, a.Allocations/float64(n))
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
