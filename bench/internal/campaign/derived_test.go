package campaign

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/bench/internal/derived"
	"github.com/kates-go/kates/bench/internal/report"
)

// local is a contender in this process. It can give a wrong sum after some answers.
type local struct {
	process
	in      *io.PipeWriter
	ended   chan error
	asked   int
	wrongAt int
}

func startLocal(name string) *local {
	commands, in := io.Pipe()
	answers, out := io.Pipe()
	l := &local{process: process{name: name, write: json.NewEncoder(in), read: json.NewDecoder(answers)}, in: in, ended: make(chan error, 1)}
	go func() { l.ended <- derived.Serve(name, commands, out) }()
	return l
}

func (l *local) askDerived(c derived.Command) (derived.Answer, error) {
	a, err := l.process.askDerived(c)
	if l.asked++; l.asked == l.wrongAt {
		a.Sums[len(a.Sums)-1] = "wrong"
	}
	return a, err
}

func (l *local) stop() error {
	_ = l.in.Close()
	return <-l.ended
}

func tiny(start func(ctx context.Context, name string) (contending, error)) DerivedOptions {
	return DerivedOptions{Sizes: []int{50}, Pods: 60, Policies: 4, Runs: 2, Checked: 5, Changes: 20, Slow: 3, Log: io.Discard, start: start}
}

func TestContendersAreMeasuredWithTheSameChanges(t *testing.T) {
	started := map[string]int{}
	r, err := Derived(t.Context(), tiny(func(_ context.Context, name string) (contending, error) {
		started[name]++
		return startLocal(name), nil
	}))
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"loop": 6, "caches": 6, "derive": 6}, started, "two runs of three workloads")
	measured := map[report.Metric]int{}
	for _, s := range r.Samples {
		measured[s.Metric]++
	}
	for _, m := range []report.Metric{report.RoutesFirst, report.RoutesChange, report.PerPodFirst, report.PerPodPod, report.PerPodPolicy,
		report.PerPodWide, report.PerPolicyFirst, report.PerPolicyPod, report.PerPolicyPolicy} {
		assert.Equal(t, 6, measured[m], m)
	}
	assert.Equal(t, 4, measured[report.RoutesMemory], "a loop holds nothing")
	assert.Equal(t, 2, measured[report.PerPodOwn])
}

func TestAnotherResultAfterAnyChangeFailsTheCampaign(t *testing.T) {
	for at, says := range map[int]string{1: "after change 0 of", 2: "after change 5 of", 3: "after change 0 of"} {
		_, err := Derived(t.Context(), tiny(func(_ context.Context, name string) (contending, error) {
			l := startLocal(name)
			if name == "derive" {
				l.wrongAt = at
			}
			return l, nil
		}))
		require.ErrorContains(t, err, "the results of derive are not those of loop")
		require.ErrorContains(t, err, says)
	}
}

func TestAContenderThatFailsIsNamed(t *testing.T) {
	o := tiny(func(context.Context, string) (contending, error) { return startLocal("nobody"), nil })
	_, err := Derived(t.Context(), o)
	require.ErrorContains(t, err, "routes of 50 objects, run 1, loop")
	o.start, o.Krt = nil, "/no/such/program"
	_, err = o.process(t.Context(), "krt-index")
	require.ErrorContains(t, err, "start krt-index")
}

func TestChangesOfAPhaseSayHowManyResultsTheyChange(t *testing.T) {
	c := &comparison{workload: derived.PerPod, objects: 10, versions: map[string]int{}, DerivedOptions: tiny(nil)}
	for _, ch := range c.changes([]derived.Kind{derived.Policy}, 3) {
		assert.Equal(t, map[int]int{1: 3, 2: 2, 3: 2}[ch.At], ch.Results, "the pods of %d", ch.At)
	}
	wide := c.checks([]derived.Kind{derived.Wide})
	assert.Equal(t, derived.Change{Kind: derived.Policy, At: 0, Version: 6, Results: 10}, wide[len(wide)-1], "the policy selects some again")
	round := c.round([]derived.Kind{derived.Pod})
	assert.Len(t, round, 6)
	for i, there := range round[:3] {
		there.Version--
		assert.Equal(t, there, round[i+3])
	}
}
