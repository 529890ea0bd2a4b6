package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kates-go/kates/bench/internal/derived"
	"github.com/kates-go/kates/bench/internal/report"
)

// DerivedOptions says what is measured of programs that keep results up to date.
type DerivedOptions struct {
	Sizes    []int // numbers of objects of each kind in a routing table
	Pods     int
	Policies int
	Runs     int
	// Checked is how many changes of a kind are made first, after each of which all results are
	// compared; Changes is how many are measured then.
	Checked, Changes int
	// Slow is how many are measured if each takes long: of a plain loop, and of a policy of all
	// pods.
	Slow int
	// Krt is the program of bench/krt. Empty: it is not measured.
	Krt  string
	Note string
	Log  io.Writer

	// start starts a contender. A test starts them without processes.
	start func(ctx context.Context, name string) (contending, error)
}

// contending is a contender that has been started.
type contending interface {
	askDerived(derived.Command) (derived.Answer, error)
	stop() error
}

// krts are the contenders of bench/krt.
var krts = map[derived.Workload][]string{
	derived.Routes: {"krt"}, derived.PerPod: {"krt"}, derived.PerPolicy: {"krt", "krt-index"},
}

// Derived measures contenders in turn, each in a process of its own. All get the same changes. It
// fails if they do not have the same results after each.
func Derived(ctx context.Context, o DerivedOptions) (*report.Results, error) {
	r := &report.Results{Machine: machine(ctx), Note: o.Note, Runs: o.Runs}
	if o.start == nil {
		o.start = o.process
	}
	for run := 1; run <= o.Runs; run++ {
		for _, n := range o.Sizes {
			if err := o.compare(ctx, r, run, derived.Routes, n); err != nil {
				return r, err
			}
		}
		for _, w := range []derived.Workload{derived.PerPod, derived.PerPolicy} {
			if err := o.compare(ctx, r, run, w, o.Pods); err != nil {
				return r, err
			}
		}
	}
	r.Machine.LoadAfter = loadAverage()
	return r, nil
}

func (o DerivedOptions) process(ctx context.Context, name string) (contending, error) {
	if _, err := derived.ByName(name); err != nil {
		return startProgram(ctx, name, o.Krt, nil, name)
	}
	return startAs(ctx, "derived", name, "")
}

// compare measures the contenders of a workload, each run in another order.
func (o DerivedOptions) compare(ctx context.Context, r *report.Results, run int, w derived.Workload, n int) error {
	names := slices.Clone(derived.Names(w))
	if o.Krt != "" {
		names = append(names, krts[w]...)
	}
	checked, measured := make(map[string][]string), make(map[string][]string)
	for _, name := range rotated(names, run-1) {
		c := &comparison{workload: w, objects: n, run: run, results: r, versions: make(map[string]int), DerivedOptions: o}
		if err := c.measure(ctx, name); err != nil {
			return fmt.Errorf("%s of %d objects, run %d, %s: %w", w, n, run, name, err)
		}
		checked[name], measured[name] = c.checked, c.measured
	}
	return errors.Join(agree(checked, names), agree(measured, names))
}

// agree compares the sums of contenders with those of the first one.
func agree(sums map[string][]string, names []string) error {
	var wrong []error
	for _, name := range names[1:] {
		if first, others := sums[names[0]], sums[name]; !slices.Equal(first, others) {
			at := 0
			for at < min(len(first), len(others)) && first[at] == others[at] {
				at++
			}
			wrong = append(wrong, fmt.Errorf("the results of %s are not those of %s, after change %d of %d", name, names[0], at, len(first)-1))
		}
	}
	return errors.Join(wrong...)
}

// comparison is what one contender does in a run.
type comparison struct {
	DerivedOptions
	workload     derived.Workload
	objects, run int
	results      *report.Results
	versions     map[string]int
	made         int // changes
	// checked are the sums after the start and after each checked change, measured those after
	// each series of measured ones.
	checked, measured []string
}

// phases are the changes of each workload, and what is measured of them.
var phases = map[derived.Workload][]struct {
	kinds  []derived.Kind
	metric report.Metric
	unit   float64 // of a second
}{
	derived.Routes:    {{[]derived.Kind{derived.Slice, derived.Deployment, derived.Service}, report.RoutesChange, 1e6}},
	derived.PerPod:    {{[]derived.Kind{derived.Pod}, report.PerPodPod, 1e6}, {[]derived.Kind{derived.Policy}, report.PerPodPolicy, 1e6}, {[]derived.Kind{derived.Wide}, report.PerPodWide, 1e3}},
	derived.PerPolicy: {{[]derived.Kind{derived.Pod}, report.PerPolicyPod, 1e6}, {[]derived.Kind{derived.Policy}, report.PerPolicyPolicy, 1e6}},
}

var firsts = map[derived.Workload]report.Metric{
	derived.Routes: report.RoutesFirst, derived.PerPod: report.PerPodFirst, derived.PerPolicy: report.PerPolicyFirst,
}

func (c *comparison) measure(ctx context.Context, name string) (err error) {
	p, err := c.start(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	add := func(m report.Metric, value float64) { c.results.Add(c.objects, c.run, name, m, value) }
	a, err := p.askDerived(derived.Command{Do: derived.Start, Workload: c.workload, Objects: c.objects, Policies: c.Policies})
	if err != nil {
		return err
	}
	c.checked = a.Sums
	add(firsts[c.workload], a.CPU*1e3)
	fmt.Fprintf(c.Log, "bench: %s of %d, run %d of %d, %-9s first %.4g ms", c.workload, c.objects, c.run, c.Runs, name, a.CPU*1e3)
	for _, phase := range phases[c.workload] {
		a, err := p.askDerived(derived.Command{Do: derived.Check, Changes: c.checks(phase.kinds)})
		if err != nil {
			return err
		}
		c.checked = append(c.checked, a.Sums...)
	}
	for _, phase := range phases[c.workload] {
		round, n := c.round(phase.kinds), c.Changes
		if name == loop || phase.kinds[0] == derived.Wide {
			n = c.Slow
		}
		n = (n + len(round) - 1) / len(round)
		a, err := p.askDerived(derived.Command{Do: derived.Measure, Changes: round, Rounds: n})
		if err != nil {
			return err
		}
		c.measured = append(c.measured, a.Sums...)
		each := a.CPU / float64(n*len(round)) * phase.unit
		add(phase.metric, each)
		fmt.Fprintf(c.Log, ", %s %.4g", phase.kinds[0], each)
	}
	fmt.Fprintln(c.Log)
	return c.extras(p, name, add)
}

// checks are the changes of a phase that are checked. After them every policy selects one app
// again.
func (c *comparison) checks(kinds []derived.Kind) []derived.Change {
	all := c.changes(kinds, c.Checked)
	if kinds[0] == derived.Wide {
		all = append(all, c.change(derived.Policy, 0, c.objects))
	}
	return all
}

// changes are so many changes of some kinds in turn, each of the next object.
func (c *comparison) changes(kinds []derived.Kind, n int) (all []derived.Change) {
	for i := range n {
		kind, at, results := kinds[i%len(kinds)], c.made*7919%c.objects, 1
		switch c.made++; {
		case kind == derived.Wide:
			at, results = 0, c.objects
		case kind == derived.Policy:
			at = 1 + c.made*11%(c.Policies-1) // the first one is the wide one
			if c.workload == derived.PerPod {
				results = (c.objects - at + c.Policies - 1) / c.Policies // the pods of its app
			}
		}
		all = append(all, c.change(kind, at, results))
	}
	return all
}

// round are changes of a few objects, to another version and back, which can be made again and
// again.
func (c *comparison) round(kinds []derived.Kind) []derived.Change {
	n := 3
	if kinds[0] == derived.Wide {
		n = 1
	}
	all := c.changes(kinds, n)
	for _, there := range all {
		back := there
		back.Version--
		all = append(all, back)
	}
	return all
}

// change gives an object its next version.
func (c *comparison) change(kind derived.Kind, at, results int) derived.Change {
	of := kind
	if kind == derived.Wide {
		of = derived.Policy
	}
	object := fmt.Sprint(of, at)
	c.versions[object]++
	return derived.Change{Kind: kind, At: at, Version: c.versions[object], Results: results}
}

// loop is the contender that makes everything each time.
const loop = "loop"

// extras measures the memory of a routing table, and the functions of a graph alone.
func (c *comparison) extras(p contending, name string, add func(report.Metric, float64)) error {
	switch {
	case c.workload == derived.PerPod && name == "derive":
		a, err := p.askDerived(derived.Command{Do: derived.Own})
		if err != nil {
			return err
		}
		add(report.PerPodOwn, a.CPU*1e3)
	case c.workload == derived.Routes && name != loop:
		a, err := p.askDerived(derived.Command{Do: derived.Memory})
		if err != nil {
			return err
		}
		add(report.RoutesMemory, a.Bytes/float64(derived.EntriesOfRoute*c.objects))
	}
	return nil
}
