package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/bench/internal/stats"
	"github.com/kates-go/kates/bench/internal/workload"
)

// trial is one run of one consumer.
type trial struct {
	Options
	results *report.Results
	load    *workload.Load
	variant consumer.Variant
	run     int

	process *process
	next    int // the next pod to change
}

func (t *trial) measure(ctx context.Context, kubeconfig string) (err error) {
	begun := time.Now()
	if t.process, err = start(ctx, t.variant, kubeconfig); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.process.stop()) }()
	for _, step := range t.steps() {
		if err := step(ctx); err != nil {
			return err
		}
	}
	t.log("%6d pods, run %d of %d, %-18s %5.1f s", t.load.Pods(), t.run, t.Runs, t.variant.Name, time.Since(begun).Seconds())
	return nil
}

func (t *trial) steps() []func(context.Context) error {
	switch {
	case t.variant.BootstrapOnly:
		return []func(context.Context) error{t.bootstrap, t.heap}
	case t.variant.LatencyOnly:
		return []func(context.Context) error{t.begin, t.latency}
	case t.spared():
		return []func(context.Context) error{t.bootstrap, t.heap, t.refresh}
	}
	steps := []func(context.Context) error{t.bootstrap, t.heap, t.refresh, t.churn, t.latency, t.own}
	if t.load.Pods() == t.ChangesAt {
		steps = append(steps, t.changes)
	}
	return steps
}

// spared reports whether only little is measured, because the consumer is slow and the server
// holds many objects.
func (t *trial) spared() bool { return t.variant.Slow && t.load.Pods() > t.SlowUpTo }

func (t *trial) add(m report.Metric, value float64) {
	t.results.Add(t.load.Pods(), t.run, t.variant.Name, m, value)
}

func (t *trial) begin(context.Context) error {
	_, err := t.process.ask(consumer.Command{Do: consumer.Bootstrap})
	return err
}

func (t *trial) bootstrap(context.Context) error {
	a, err := t.process.ask(consumer.Command{Do: consumer.Bootstrap})
	if err != nil {
		return err
	}
	if least := t.load.Pods() + 2*(t.load.Pods()/10); a.Objects < least {
		return fmt.Errorf("the first snapshot of %s has %d objects, of at least %d", t.variant.Name, a.Objects, least)
	}
	t.add(report.BootstrapTime, a.Seconds)
	t.add(report.BootstrapCPU, a.CPU)
	t.add(report.BootstrapPeak, a.PeakBytes/1e6)
	t.add(report.Requests, float64(len(a.Requests)))
	t.add(report.Received, a.Received/1e6)
	for _, s := range t.results.Startup {
		if s.Consumer == t.variant.Name {
			return nil
		}
	}
	t.results.Startup = append(t.results.Startup, report.Startup{Consumer: t.variant.Name, Requests: a.Requests})
	return nil
}

func (t *trial) heap(context.Context) error {
	a, err := t.process.ask(consumer.Command{Do: consumer.Heap})
	if err != nil {
		return err
	}
	t.add(report.HeapTotal, a.Bytes/1e6)
	t.add(report.HeapPerObject, a.Bytes/float64(a.Objects))
	return nil
}

func (t *trial) refresh(ctx context.Context) error {
	var times, allocated, clones []float64
	for end := time.Now().Add(t.Budget); len(times) < t.Refreshes && (len(times) == 0 || time.Now().Before(end)); {
		a, err := t.refreshAfter(ctx, 1)
		if err != nil {
			return err
		}
		times, allocated = append(times, a.Seconds), append(allocated, a.Bytes)
		if a.CloneSeconds > 0 {
			clones = append(clones, a.CloneSeconds)
		}
	}
	t.add(report.RefreshTime, 1e3*stats.Median(times))
	t.add(report.RefreshAlloc, stats.Median(allocated)/1e6)
	if len(clones) > 0 {
		t.add(report.CloneTime, 1e3*stats.Median(clones))
	}
	return nil
}

// refreshAfter changes n pods, gives the changes time to reach the consumer, and has it make a
// snapshot. A snapshot without the changes does not count.
func (t *trial) refreshAfter(ctx context.Context, n int) (consumer.Answer, error) {
	for settle := t.Settle; ; settle *= 2 {
		if _, err := t.process.ask(consumer.Command{Do: consumer.Drain}); err != nil {
			return consumer.Answer{}, err
		}
		changes := t.spread("refresh", n)
		if err := t.load.Change(ctx, changes); err != nil {
			return consumer.Answer{}, err
		}
		time.Sleep(settle)
		a, err := t.process.ask(consumer.Command{Do: consumer.Refresh, Marks: workload.MarksOf(changes)})
		if err != nil || a.Missing == 0 {
			return a, err
		}
		if settle > stalePeriod {
			return a, fmt.Errorf("%s does not show %d of %d changes after %v", t.variant.Name, a.Missing, n, settle)
		}
	}
}

// spread returns n changes of pods in turn, with marks that were never used before.
func (t *trial) spread(what string, n int) []workload.Change {
	first := t.next
	t.next += n
	return t.load.Spread(fmt.Sprintf("%s-%s-%d-%d", what, t.variant.Name, t.run, first), first, n)
}

func (t *trial) churn(ctx context.Context) error {
	changes := t.spread("churn", t.Updates)
	a, lag, err := churned(ctx, t.process, reconcile, workload.MarksOf(changes), func(ctx context.Context) error {
		return t.load.Change(ctx, changes)
	})
	if err != nil {
		return err
	}
	t.add(report.ChurnCPU, a.CPU)
	t.add(report.ChurnStale, float64(a.Missing))
	t.add(report.ChurnLag, lag)
	return nil
}

// churned lets a consumer reconcile while f makes changes, until it shows the marks. It returns
// the consumer's answer, and how long after f the last snapshot came.
func churned(ctx context.Context, p *process, reconcile time.Duration, marks map[string]string, f func(context.Context) error) (consumer.Answer, float64, error) {
	if _, err := p.ask(consumer.Command{Do: consumer.Churn, Seconds: reconcile.Seconds()}); err != nil {
		return consumer.Answer{}, 0, err
	}
	if err := f(ctx); err != nil {
		return consumer.Answer{}, 0, err
	}
	last := time.Now()
	a, err := p.ask(consumer.Command{Do: consumer.Settle, Marks: marks, Seconds: stalePeriod.Seconds()})
	return a, max(0, float64(a.UnixNano-last.UnixNano())/1e9), err
}

// latency measures from before a write is sent until the snapshot with it is returned.
func (t *trial) latency(ctx context.Context) error {
	var samples []float64
	for end := time.Now().Add(t.Budget); len(samples) < t.Latencies && (len(samples) < 3 || time.Now().Before(end)); {
		ms, err := t.timed(ctx)
		if err != nil {
			return err
		}
		samples = append(samples, ms)
	}
	t.add(report.LatencyP50, stats.Percentile(samples, 50))
	t.add(report.LatencyP99, stats.Percentile(samples, 99))
	return nil
}

func (t *trial) timed(ctx context.Context) (float64, error) {
	pod := t.next % t.load.Pods()
	t.next++
	if _, err := t.process.ask(consumer.Command{Do: consumer.Await, Pod: workload.Key(pod), Seconds: awaitPeriod.Seconds()}); err != nil {
		return 0, err
	}
	mark, err := t.load.Timed(ctx, pod)
	if err != nil {
		return 0, err
	}
	a, err := t.process.answer()
	if err != nil {
		return 0, err
	}
	if a.Mark != mark {
		return 0, fmt.Errorf("%s shows the mark %q, not %q", t.variant.Name, a.Mark, mark)
	}
	at, err := workload.StampedAt(mark)
	return float64(a.UnixNano-at.UnixNano()) / 1e6, err
}

func (t *trial) own(context.Context) error {
	a, err := t.process.ask(consumer.Command{Do: consumer.Own, Pod: workload.Key(t.next % t.load.Pods()), Times: t.Latencies})
	if err != nil || len(a.Samples) == 0 {
		return err
	}
	t.add(report.OwnRead, 1e6*stats.Percentile(a.Reads, 50))
	t.add(report.OwnP50, 1e6*stats.Percentile(a.Samples, 50))
	t.add(report.OwnP99, 1e6*stats.Percentile(a.Samples, 99))
	return nil
}

func (t *trial) changes(ctx context.Context) error {
	for _, n := range t.Changes {
		if n > t.load.Pods() {
			continue
		}
		a, err := t.refreshAfter(ctx, n)
		if err != nil {
			return err
		}
		t.results.AddAt(t.load.Pods(), t.run, t.variant.Name, report.ChangesTime, n, 1e3*a.Seconds)
	}
	return nil
}
