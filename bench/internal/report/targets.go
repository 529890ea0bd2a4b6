package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kates-go/kates/bench/internal/stats"
)

// target is a bound on the ratio of kates' value to another consumer's in the same run, or,
// without another consumer, on kates' value itself.
type target struct {
	text            string
	metric          Metric
	consumer, other string
	// otherMetric is the other consumer's metric; empty means the same metric.
	otherMetric Metric
	most        float64
	// of is where it was measured; empty means the campaign of the sizes.
	of Part
	// least is the number of pods from which on the target holds.
	least int
	// upTo is the number of pods up to which it holds; 0: there is none.
	upTo int
	// at is the number of cores or replicas, otherAt that of the other consumer if it differs.
	at, otherAt int
	// atLeast marks a target that is a lower bound.
	atLeast bool
}

// From these numbers of pods on a target holds.
const large, largest = 10000, 50000

var targets = []target{
	{text: "Six fields, live heap per object: 0.08× typed informers", metric: HeapPerObject, consumer: "kates-lite", other: "informers", most: 0.08, least: large},
	{text: "Six fields, bootstrap peak RSS: 0.2× typed informers", metric: BootstrapPeak, consumer: "kates-lite", other: "informers", most: 0.2, least: largest},
	{text: "Six fields, bootstrap CPU: 0.5× typed informers", metric: BootstrapCPU, consumer: "kates-lite", other: "informers", most: 0.5, least: large},
	{text: "Live heap per object: 0.45× typed informers", metric: HeapPerObject, consumer: "kates", other: "informers", most: 0.45},
	{text: "Live heap per object, everything kept: 1.0× typed informers", metric: HeapPerObject, consumer: "kates-full", other: "informers", most: 1},
	{text: "Live heap per object, untyped: 1.0× typed informers", metric: HeapPerObject, consumer: "kates-untyped", other: "informers", most: 1},
	{text: "Live heap per object, metadata only: 1.0× metadata informers", metric: HeapPerObject, consumer: "kates-metadata", other: "informers-metadata", most: 1},
	{text: "Bootstrap CPU: 0.6× typed informers", metric: BootstrapCPU, consumer: "kates", other: "informers", most: 0.6, least: large},
	{text: "Bootstrap CPU, metadata only: 1.0× metadata informers", metric: BootstrapCPU, consumer: "kates-metadata", other: "informers-metadata", most: 1, least: large},
	{text: "Bootstrap peak RSS: 0.7× typed informers", metric: BootstrapPeak, consumer: "kates", other: "informers", most: 0.7},
	{text: "Time to the first snapshot: 0.7× typed informers", metric: BootstrapTime, consumer: "kates", other: "informers", most: 0.7, least: largest},
	{text: "Events per second on 1 core: 1.5× typed informers", metric: EventRate, consumer: "kates", other: "informers", most: 1.5, at: 1, atLeast: true},
	{text: "Events per second on 2 cores: 1.5× typed informers", metric: EventRate, consumer: "kates", other: "informers", most: 1.5, at: 2, atLeast: true},
	{text: "Events per second on 4 cores: 1.5× typed informers", metric: EventRate, consumer: "kates", other: "informers", most: 1.5, at: 4, atLeast: true},
	{text: "CPU per event on 1 core: 0.6× typed informers", metric: EventCPU, consumer: "kates", other: "informers", most: 0.6, at: 1},
	{text: "CPU per event on 2 cores: 0.6× typed informers", metric: EventCPU, consumer: "kates", other: "informers", most: 0.6, at: 2},
	{text: "CPU per event on 4 cores: 0.6× typed informers", metric: EventCPU, consumer: "kates", other: "informers", most: 0.6, at: 4},
	{text: "Refresh after 1 change: 0.05× typed informers + listers", metric: RefreshTime, consumer: "kates", other: "informers", most: 0.05, least: large},
	{text: "Refresh after 1 change: 10,000× faster than re-encoding everything", metric: RefreshTime, consumer: "kates", other: "reencode", most: 1.0 / 10000, least: large},
	{text: "Refresh after 1 change: no slower than a clone of the pointer slices", metric: RefreshTime, consumer: "kates", other: "kates", otherMetric: CloneTime, most: 1, least: large},
	{text: "Metrics and status page: 1.02× the CPU of kates in churn", metric: ChurnCPU, consumer: "kates-observed", other: "kates", most: 1.02},
	{text: "Churn CPU: 1.0× typed informers", metric: ChurnCPU, consumer: "kates", other: "informers", most: 1},
	{text: "Churn: no stale objects", metric: ChurnStale, consumer: "kates", most: 0},
	{text: "Write to visible, p99: 1.5× a bare typed watch", metric: LatencyP99, consumer: "kates", other: "watch", most: 1.5},
	{text: "Own write visible to who reads the object: 10 µs (p50)", metric: OwnRead, consumer: "kates", most: 10},
	{text: "Own write visible in the next snapshot of all: 10 µs (p50)", metric: OwnP50, consumer: "kates", most: 10},
	{text: "A crowd, time to the first snapshot: 0.8× typed informers", of: Crowd, metric: BootstrapTime, consumer: "kates", other: "informers", most: 0.8},
	{text: "A crowd, peak RSS: 0.5× typed informers", of: Crowd, metric: BootstrapPeak, consumer: "kates", other: "informers", most: 0.5},
	{text: "A crowd, refresh after 1 change: 0.1 ms", of: Crowd, metric: RefreshTime, consumer: "kates", most: 0.1},
	{text: "A crowd, six fields, time to the first snapshot: 0.6× typed informers", of: Crowd, metric: BootstrapTime, consumer: "kates-lite", other: "informers", most: 0.6},
	{text: "A crowd, six fields, peak RSS: 0.08× typed informers", of: Crowd, metric: BootstrapPeak, consumer: "kates-lite", other: "informers", most: 0.08},
	{text: "Warm start, time to the first snapshot: 0.15× typed informers", metric: BootstrapTime, consumer: "kates-warm", other: "informers", most: 0.15, least: largest},
	{text: "Warm start, received: 0.01× typed informers", metric: Received, consumer: "kates-warm", other: "informers", most: 0.01, least: largest},
	{text: "Four replicas share, live heap of one: 0.3× that of one alone", of: Shards, metric: HeapTotal, consumer: "kates-sharded", other: "kates-sharded", most: 0.3, at: 4, otherAt: 1},
	{text: "Four replicas share, received by one: 0.3× that of one alone", of: Shards, metric: Received, consumer: "kates-sharded", other: "kates-sharded", most: 0.3, at: 4, otherAt: 1},
	{text: "Routing table, an object changes: 10 µs of CPU", of: Derived, metric: RoutesChange, consumer: "derive", most: 10, upTo: large},
	{text: "Routing table, an object changes: 60 µs of CPU", of: Derived, metric: RoutesChange, consumer: "derive", most: 60, least: 10 * large},
	{text: "Routing table, first: 1.5× a plain loop", of: Derived, metric: RoutesFirst, consumer: "derive", other: "loop", most: 1.5, least: large},
	{text: "Routing table, memory per entry without its value: 200 bytes", of: Derived, metric: RoutesMemory, consumer: "derive", most: 200, least: large},
	{text: "A result per pod, first: 100 ms of CPU", of: Derived, metric: PerPodFirst, consumer: "derive", most: 100},
	{text: "A result per pod, a pod changes: 10 µs", of: Derived, metric: PerPodPod, consumer: "derive", most: 10},
	{text: "A result per pod, a policy of 20 changes: 300 µs", of: Derived, metric: PerPodPolicy, consumer: "derive", most: 300},
	{text: "A result per pod, a policy of all changes: 20 ms", of: Derived, metric: PerPodWide, consumer: "derive", most: 20},
	{text: "A result per policy, first: 100 ms", of: Derived, metric: PerPolicyFirst, consumer: "derive", most: 100},
	{text: "A result per policy, a pod changes: 20 µs", of: Derived, metric: PerPolicyPod, consumer: "derive", most: 20},
	{text: "A result per policy, a policy changes: 60 µs", of: Derived, metric: PerPolicyPolicy, consumer: "derive", most: 60},
}

// verdict is the outcome of a target at one size.
type verdict struct {
	pods       int // 0: it has none
	text       string
	value      float64
	most       float64
	atLeast    bool // most is a lower bound
	isRatio    bool
	inSomeRuns string // how many runs meet it
}

func (v verdict) hit() bool { return meets(v.value, v.most, v.atLeast) }

func meets(value, bound float64, atLeast bool) bool {
	if atLeast {
		return value >= bound
	}
	return value <= bound
}

// verdicts judges all targets that were measured.
func verdicts(r *Results) (all []verdict) {
	for _, t := range targets {
		of := r
		if t.of != "" {
			of = r.Apart[t.of]
		}
		if of == nil {
			continue
		}
		for _, pods := range of.sizes(t) {
			if v, ok := t.judge(of, pods); ok && (pods == 0 || pods >= t.least && (t.upTo == 0 || pods <= t.upTo)) {
				all = append(all, v)
			}
		}
	}
	return append(all, operatorVerdicts(r.Operators)...)
}

// sizes returns the numbers of pods at which the metric of a target was measured, in order.
func (r *Results) sizes(t target) (all []int) {
	for _, s := range r.Samples {
		if s.Metric == t.metric && s.Consumer == t.consumer && s.At == t.at && !slices.Contains(all, s.Pods) {
			all = append(all, s.Pods)
		}
	}
	slices.Sort(all)
	return all
}

func (t target) judge(r *Results, pods int) (verdict, bool) {
	ours := r.runs(pods, t.consumer, t.metric, t.at)
	theirs := map[int]float64{}
	if t.other != "" {
		m, at := t.metric, t.at
		if t.otherMetric != "" {
			m = t.otherMetric
		}
		if t.otherAt != 0 {
			at = t.otherAt
		}
		theirs = r.runs(pods, t.other, m, at)
	} else {
		for run := range ours {
			theirs[run] = 1
		}
	}
	return judged(verdict{pods: pods, text: t.text, most: t.most, atLeast: t.atLeast, isRatio: t.other != ""}, ours, theirs)
}

// judged compares two values of each run.
func judged(v verdict, ours, theirs map[int]float64) (verdict, bool) {
	v.value = stats.PairRatio(ours, theirs)
	hits, pairs := 0, 0
	for run, x := range ours {
		if y, ok := theirs[run]; ok && y != 0 {
			pairs++
			if meets(x/y, v.most, v.atLeast) {
				hits++
			}
		}
	}
	v.inSomeRuns = fmt.Sprintf("%d of %d", hits, pairs)
	return v, !math.IsNaN(v.value)
}

func writeTargets(b *strings.Builder, r *Results) {
	all := verdicts(r)
	if len(all) == 0 {
		return
	}
	b.WriteString("## Targets\n\nRatios are medians over pairs: kates and the other in the same run, on the same server.\n\n")
	b.WriteString("| target | pods | bound | measured | in runs | |\n|---|--:|--:|--:|--:|---|\n")
	for _, v := range all {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", v.text, v.size(), v.bound(), v.measured(), v.inSomeRuns, v.word())
	}
	b.WriteString("\n")
}

func (v verdict) size() string {
	if v.pods == 0 {
		return ""
	}
	return count(v.pods)
}

func (v verdict) unit() string {
	if v.isRatio {
		return "×"
	}
	return ""
}

func (v verdict) bound() string {
	sign := "≤ "
	if v.atLeast {
		sign = "≥ "
	}
	return sign + number(v.most) + v.unit()
}

func (v verdict) measured() string { return number(v.value) + v.unit() }

func (v verdict) word() string {
	switch {
	case v.hit():
		return "hit"
	case v.most == 0:
		return "**missed**"
	case v.atLeast:
		return "**missed**, " + number(v.most/v.value) + "× under"
	}
	return "**missed**, " + number(v.value/v.most) + "× over"
}
