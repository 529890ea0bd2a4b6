package report

import (
	"fmt"
	"math"
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
	// large marks a target that holds from 10,000 pods on.
	large bool
}

var targets = []target{
	{text: "Refresh after 1 change: 20× faster than typed informers + listers", metric: RefreshTime, consumer: "kates", other: "informers", most: 1.0 / 20, large: true},
	{text: "Refresh after 1 change: 10,000× faster than re-encoding everything", metric: RefreshTime, consumer: "kates", other: "reencode", most: 1.0 / 10000, large: true},
	{text: "Refresh after 1 change: no slower than a clone of the pointer slices", metric: RefreshTime, consumer: "kates", other: "kates", otherMetric: CloneTime, most: 1, large: true},
	{text: "Bootstrap CPU: 0.8× typed informers", metric: BootstrapCPU, consumer: "kates", other: "informers", most: 0.8},
	{text: "Bootstrap peak RSS: 0.7× typed informers", metric: BootstrapPeak, consumer: "kates", other: "informers", most: 0.7},
	{text: "Live heap per object: 0.7× typed informers", metric: HeapPerObject, consumer: "kates", other: "informers", most: 0.7},
	{text: "Live heap per object, everything kept: 1.0× typed informers", metric: HeapPerObject, consumer: "kates-full", other: "informers", most: 1},
	{text: "Metrics and status page: 1.02× the CPU of kates in churn", metric: ChurnCPU, consumer: "kates-observed", other: "kates", most: 1.02},
	{text: "Churn CPU: 1.0× typed informers", metric: ChurnCPU, consumer: "kates", other: "informers", most: 1},
	{text: "Churn: no stale objects", metric: ChurnStale, consumer: "kates", most: 0},
	{text: "Write to visible, p99: 1.5× a bare typed watch", metric: LatencyP99, consumer: "kates", other: "watch", most: 1.5},
	{text: "Own write visible to who reads the object: 10 µs (p50)", metric: OwnRead, consumer: "kates", most: 10},
	{text: "Own write visible in the next snapshot of all: 10 µs (p50)", metric: OwnP50, consumer: "kates", most: 10},
}

// verdict is the outcome of a target at one size.
type verdict struct {
	pods       int
	text       string
	value      float64
	most       float64
	isRatio    bool
	inSomeRuns string // how many runs meet it
}

func (v verdict) hit() bool { return v.value <= v.most }

// verdicts judges all targets that were measured.
func verdicts(r *Results) (all []verdict) {
	for _, t := range targets {
		for _, size := range r.Sizes {
			if t.large && size.Pods < 10000 {
				continue
			}
			if v, ok := t.judge(r, size.Pods); ok {
				all = append(all, v)
			}
		}
	}
	return all
}

func (t target) judge(r *Results, pods int) (verdict, bool) {
	ours := r.runs(pods, t.consumer, t.metric, 0)
	theirs := map[int]float64{}
	if t.other != "" {
		m := t.metric
		if t.otherMetric != "" {
			m = t.otherMetric
		}
		theirs = r.runs(pods, t.other, m, 0)
	} else {
		for run := range ours {
			theirs[run] = 1
		}
	}
	value := stats.PairRatio(ours, theirs)
	hits, pairs := 0, 0
	for run, x := range ours {
		if y, ok := theirs[run]; ok && y != 0 {
			pairs++
			if x/y <= t.most {
				hits++
			}
		}
	}
	return verdict{
		pods: pods, text: t.text, value: value, most: t.most, isRatio: t.other != "",
		inSomeRuns: fmt.Sprintf("%d of %d", hits, pairs),
	}, !math.IsNaN(value)
}

func writeTargets(b *strings.Builder, r *Results) {
	all := verdicts(r)
	if len(all) == 0 {
		return
	}
	b.WriteString("## Targets\n\nRatios are medians over pairs: kates and the other in the same run, on the same server.\n\n")
	b.WriteString("| target | pods | at most | measured | in runs | |\n|---|--:|--:|--:|--:|---|\n")
	for _, v := range all {
		word := "**missed**, " + number(v.value/v.most) + "× over"
		if v.most == 0 {
			word = "**missed**"
		}
		if v.hit() {
			word = "hit"
		}
		unit := ""
		if v.isRatio {
			unit = "×"
		}
		fmt.Fprintf(b, "| %s | %s | %s%s | %s%s | %s | %s |\n", v.text, count(v.pods), number(v.most), unit, number(v.value), unit, v.inSomeRuns, word)
	}
	b.WriteString("\n")
}
