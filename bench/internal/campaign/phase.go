package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/bench/internal/operator"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/bench/internal/stats"
	"github.com/kates-go/kates/bench/internal/workload"
)

// countPeriod is how often an operator is asked for its counts.
const countPeriod = 50 * time.Millisecond

// usage is what was used up to a moment.
type usage struct {
	operator.Answer
	server float64 // CPU seconds of the API server
}

func (t *operatorTrial) usage(ctx context.Context) (u usage, err error) {
	if u.Answer, err = t.process.askOperator(operator.Command{Do: operator.Count}); err != nil {
		return u, err
	}
	u.server, err = t.serverCPU(ctx)
	return u, err
}

// phase measures what the operator does because of f, which makes a number of changes: first
// until the judge is content, and then until the operator is idle.
func (t *operatorTrial) phase(ctx context.Context, p report.Phase, changes int, f func(context.Context) error) (err error) {
	if err := t.startProfile(p); err != nil {
		return err
	}
	before, err := t.usage(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := f(ctx); err != nil {
		return err
	}
	right, err := t.judge.Await(ctx, t.Patience)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	after, err := t.idle(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	if changes > 0 {
		t.add(p, report.OperatorTime, right.Sub(begun).Seconds())
	}
	t.add(p, report.OperatorIdle, time.Unix(0, after.Counts.UnixNano).Sub(begun).Seconds())
	t.addUsage(p, changes, before, after)
	return t.endProfile()
}

// addUsage adds what was used between two moments.
func (t *operatorTrial) addUsage(p report.Phase, changes int, before, after usage) {
	t.add(p, report.OperatorCPU, after.CPU-before.CPU)
	t.add(p, report.OperatorServerCPU, after.server-before.server)
	c := after.Counts.Less(before.Counts)
	t.add(p, report.OperatorRequests, float64(c.Total()))
	for _, verb := range verbsOf(c) {
		t.results.AddRequests(t.run, t.variant.Name, p, verb, c.Requests[verb])
	}
	t.add(p, report.OperatorRefused, float64(c.Refused))
	t.add(p, report.OperatorReconciles, float64(c.Reconciles))
	t.add(p, report.OperatorNothing, float64(c.Idle))
	t.add(p, report.OperatorErrors, float64(c.Errors))
	if changes > 0 {
		t.add(p, report.OperatorPerChange, float64(c.Reconciles)/float64(changes))
	}
}

// idle waits until the operator has been idle for a while, after some activity.
func (t *operatorTrial) idle(ctx context.Context) (usage, error) {
	deadline := time.Now().Add(t.Patience)
	for {
		u, err := t.process.askOperator(operator.Command{Do: operator.Count})
		if err != nil {
			return usage{}, err
		}
		last := time.Unix(0, u.Counts.UnixNano)
		if u.Counts.Busy == 0 && u.Counts.Reconciles > 0 && time.Since(last) > t.Quiet {
			return t.usage(ctx)
		}
		if time.Now().After(deadline) {
			return usage{}, fmt.Errorf("it is not idle after %v, but has made %d reconciles and %d requests", t.Patience, u.Counts.Reconciles, u.Counts.Total())
		}
		select {
		case <-time.After(countPeriod):
		case <-ctx.Done():
			return usage{}, context.Cause(ctx)
		}
	}
}

// paced changes one spec after the other, each when the effect of the last one is complete.
func (t *operatorTrial) paced(ctx context.Context) error {
	before, err := t.usage(ctx)
	if err != nil {
		return err
	}
	var ms []float64
	for n := range t.Paced {
		i := n % t.Roots
		t.versions[i] += 1 + n%2
		spec := workload.AppSpec(i, t.versions[i])
		t.judge.Expect(workload.AppName(i), spec)
		begun := time.Now()
		if err := t.apps.Change(ctx, i, spec); err != nil {
			return err
		}
		right, err := t.judge.Await(ctx, t.Patience)
		if err != nil {
			return fmt.Errorf("%s: %w", report.PhasePaced, err)
		}
		ms = append(ms, right.Sub(begun).Seconds()*1e3)
	}
	after, err := t.idle(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", report.PhasePaced, err)
	}
	t.add(report.PhasePaced, report.OperatorP50, stats.Percentile(ms, 50))
	t.add(report.PhasePaced, report.OperatorP99, stats.Percentile(ms, 99))
	t.addUsage(report.PhasePaced, t.Paced, before, after)
	return nil
}

func (t *operatorTrial) startProfile(p report.Phase) error {
	if t.ProfileTo == "" {
		return nil
	}
	path := filepath.Join(t.ProfileTo, fmt.Sprintf("%s-%s-%d", t.variant.Name, p, t.run))
	_, err := t.process.askOperator(operator.Command{Do: operator.Profile, Path: path})
	return err
}

func (t *operatorTrial) endProfile() error {
	if t.ProfileTo == "" {
		return nil
	}
	_, err := t.process.askOperator(operator.Command{Do: operator.EndProfile})
	return err
}

// serverCPU returns the CPU time of the API server's process, from its metrics.
func (t *operatorTrial) serverCPU(ctx context.Context) (float64, error) {
	client, err := kubernetes.NewForConfig(t.cluster.Config)
	if err != nil {
		return 0, fmt.Errorf("ask the API server for its CPU time: %w", err)
	}
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask the API server for its CPU time: %w", err)
	}
	return cpuIn(text)
}

// cpuIn reads a process's CPU time from metrics in Prometheus' text format.
func cpuIn(metrics []byte) (float64, error) {
	for line := range bytes.Lines(metrics) {
		if value, ok := bytes.CutPrefix(line, []byte("process_cpu_seconds_total ")); ok {
			return strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
		}
	}
	return 0, errors.New("ask the API server for its CPU time: its metrics do not have it")
}
