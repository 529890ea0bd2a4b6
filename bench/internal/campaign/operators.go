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

	"github.com/kates-go/kates/bench/internal/operator"
	"github.com/kates-go/kates/bench/internal/operator/api"
	"github.com/kates-go/kates/bench/internal/operator/judge"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/bench/internal/workload"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// OperatorOptions says how much is measured of operators. All fields must be set except Note and
// ProfileTo.
type OperatorOptions struct {
	Roots     int
	Runs      int
	Workers   int
	Operators []operator.Variant

	Changes int // how many specs change at once
	Paced   int // how many change one after the other
	Drift   int // how many owned objects change
	// Quiet is how long an operator does nothing before it counts as idle.
	Quiet time.Duration
	// Patience is how long anything may take.
	Patience time.Duration

	Note string
	// ProfileTo is a folder for profiles of each phase except the paced one. If empty, there are
	// none.
	ProfileTo string
	Log       io.Writer
}

// Operators runs one operator on several libraries. Each has its own process and its own server,
// and the order changes from run to run. Brief ones are in the first run only. An error of any of
// them ends it; it then returns the results so far. It is an error if they make different
// objects.
func Operators(ctx context.Context, o OperatorOptions) (*report.Operators, error) {
	r := &report.Operators{
		Machine: machine(ctx), Note: o.Note, Runs: o.Runs, Roots: o.Roots, Workers: o.Workers,
		PerRoot: len(api.Listed[api.Object](wantedOf(0))), Changes: o.Changes, Paced: o.Paced, Drift: o.Drift,
	}
	made := make(map[string]judge.Fingerprints)
	for run := 1; run <= o.Runs; run++ {
		first := (run - 1) % len(o.Operators)
		for _, v := range slices.Concat(o.Operators[first:], o.Operators[:first]) {
			if v.Brief && run > 1 {
				continue
			}
			t := &operatorTrial{OperatorOptions: o, results: r, variant: v, run: run}
			if err := t.measure(ctx); err != nil {
				return r, fmt.Errorf("the operator %s, run %d: %w", v.Name, run, err)
			}
			made[v.Name] = t.made
			for other, objects := range made {
				if key := t.made.Difference(objects); key != "" {
					return r, fmt.Errorf("the operators %s and %s have made different objects: %s", v.Name, other, key)
				}
			}
		}
	}
	r.Machine.LoadAfter = loadAverage()
	return r, nil
}

func wantedOf(i int) api.Objects {
	return api.Wanted(&api.App{Spec: workload.AppSpec(i, 0)})
}

// operatorTrial is one run of one operator.
type operatorTrial struct {
	OperatorOptions
	results *report.Operators
	variant operator.Variant
	run     int

	cluster    *apiserver.Cluster
	kubeconfig string
	apps       *workload.Apps
	judge      *judge.Judge
	process    *process
	versions   map[int]int // how often the spec of an App was changed
	made       judge.Fingerprints
}

func (t *operatorTrial) measure(ctx context.Context) error {
	return withCluster(ctx, func(c *apiserver.Cluster, kubeconfig string) error {
		t.cluster, t.kubeconfig, t.versions = c, kubeconfig, make(map[int]int)
		t.results.Machine.Versions = withVersion(t.results.Machine.Versions, "kube-apiserver "+c.Version)
		if err := t.prepare(ctx); err != nil {
			return err
		}
		watching, stop := context.WithCancel(ctx)
		defer stop()
		var err error
		if t.judge, err = judge.Start(watching, c.Config); err != nil {
			return err
		}
		for i := range t.Roots {
			t.judge.Expect(workload.AppName(i), workload.AppSpec(i, 0))
		}
		begun := time.Now()
		err = t.running(ctx, t.start, t.changes, t.paced, t.drift)
		if err == nil {
			err = t.running(ctx, t.restart)
		}
		if err != nil {
			return err
		}
		t.log("%5d roots, run %d of %d, %-18s %5.1f s", t.Roots, t.run, t.Runs, t.variant.Name, time.Since(begun).Seconds())
		t.made, err = t.judge.Fingerprints()
		return err
	})
}

// prepare fills the server.
func (t *operatorTrial) prepare(ctx context.Context) error {
	definition := filepath.Join(filepath.Dir(t.kubeconfig), "app.yaml")
	if err := os.WriteFile(definition, api.Definition, 0o600); err != nil {
		return err
	}
	if err := t.cluster.InstallCRDs(ctx, definition); err != nil {
		return err
	}
	var err error
	if t.apps, err = workload.NewApps(t.cluster.Config, t.Roots); err != nil {
		return err
	}
	return t.apps.Fill(ctx)
}

// running runs steps with a process of the operator.
func (t *operatorTrial) running(ctx context.Context, steps ...func(context.Context) error) (err error) {
	if t.process, err = startAs(ctx, "operate", t.variant.Name, t.kubeconfig); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.process.stop()) }()
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *operatorTrial) add(p report.Phase, m report.OperatorMetric, value float64) {
	t.results.Add(t.run, t.variant.Name, p, m, value)
}

// start lets the operator make all objects.
func (t *operatorTrial) start(ctx context.Context) error {
	err := t.phase(ctx, report.PhaseStart, t.Roots, t.launch)
	if err != nil {
		return err
	}
	return t.memory(report.PhaseStart)
}

func (t *operatorTrial) launch(context.Context) error {
	_, err := t.process.askOperator(operator.Command{Do: operator.Start, Workers: t.Workers})
	return err
}

func (t *operatorTrial) memory(p report.Phase) error {
	counted, err := t.process.askOperator(operator.Command{Do: operator.Count})
	if err != nil {
		return err
	}
	t.add(p, report.OperatorPeak, counted.PeakBytes/1e6)
	live, err := t.process.askOperator(operator.Command{Do: operator.Heap})
	if err != nil {
		return err
	}
	t.add(p, report.OperatorHeap, live.Bytes/1e6)
	return nil
}

// restart starts the operator when everything is as wanted.
func (t *operatorTrial) restart(ctx context.Context) error {
	if err := t.phase(ctx, report.PhaseRestart, 0, t.launch); err != nil {
		return err
	}
	return t.memory(report.PhaseRestart)
}

// changes changes specs at once. Every other change replaces an object.
func (t *operatorTrial) changes(ctx context.Context) error {
	return t.phase(ctx, report.PhaseChanges, t.Changes, func(ctx context.Context) error {
		for i := range t.Changes {
			t.versions[i] += 1 + i%2
			t.judge.Expect(workload.AppName(i), workload.AppSpec(i, t.versions[i]))
		}
		return t.apps.Each(ctx, t.Changes, func(ctx context.Context, i int) error {
			return t.apps.Change(ctx, i, workload.AppSpec(i, t.versions[i]))
		})
	})
}

// drift changes or deletes owned objects by turns, each of another App.
func (t *operatorTrial) drift(ctx context.Context) error {
	return t.phase(ctx, report.PhaseDrift, t.Drift, func(ctx context.Context) error {
		return t.apps.Each(ctx, t.Drift, func(ctx context.Context, i int) error {
			app := workload.AppName(t.Roots - 1 - i)
			owned := t.judge.Owned(app)
			if len(owned) == 0 {
				return fmt.Errorf("%s owns nothing", app)
			}
			o := owned[i/2%len(owned)]
			if i%2 == 0 {
				if err := t.apps.Delete(ctx, o); err != nil {
					return err
				}
				t.judge.Deleted(app, o)
				return nil
			}
			spoilt, err := t.apps.Spoil(ctx, o)
			if err != nil {
				return err
			}
			t.judge.Changed(app, spoilt)
			return nil
		})
	})
}

func (o OperatorOptions) log(format string, args ...any) {
	fmt.Fprintf(o.Log, "bench: "+format+"\n", args...)
}

// verbsOf returns the verbs that were used, in order.
func verbsOf(c operator.Counts) []string {
	return slices.DeleteFunc(slices.Clone(operator.Verbs), func(v string) bool { return c.Requests[v] == 0 })
}
