package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kates-go/kates/bench/internal/stats"
)

// apart says how the campaigns apart from the sizes are shown.
var apart = []struct {
	part    Part
	heading string
	text    string
	metrics []Metric // nil: there is no table of clients
}{
	{Crowd, "A crowd", "By `make bench-crowd`: a server in another process makes the pods as they are asked for, and sends 5,000 events per second to a reconciler of 0.2 s.",
		[]Metric{BootstrapTime, BootstrapCPU, BootstrapPeak, HeapPerObject, Received, RefreshTime, EventCPU, EventAllocs}},
	{Derived, "Results that are kept up to date", "By `make bench-derive`: a graph of package derive beside a plain loop over everything, caches that are written by hand, and Istio's krt. Each has a process of its own, and all get the same changes. Their results are compared after each. Times are CPU times of the process.",
		[]Metric{RoutesFirst, RoutesChange, RoutesMemory, PerPodFirst, PerPodPod, PerPodPolicy, PerPodWide, PerPodOwn, PerPolicyFirst, PerPolicyPod, PerPolicyPolicy}},
	{Builds, "The first build of a program", "By `make bench-build`: `go build` with an empty cache and all modules there, of the least program that watches pods.",
		[]Metric{BuildTime, BuildCPU, BuildPackages, BuildSize}},
	{Shards, "Replicas that share", "By `make bench-sharded`: replicas begin together, each in a process of its own, and divide the namespaces of the pods. The API server sends each its part (KEP-5866). The means of all replicas.", nil},
}

// writeApart writes a section for each campaign apart.
func writeApart(b *strings.Builder, r *Results, all Titles) {
	for _, a := range apart {
		of := r.Apart[a.part]
		if of == nil {
			continue
		}
		titles := all.Consumers
		what := "pods"
		switch a.part {
		case Builds:
			titles = all.Builds
		case Derived:
			titles, what = all.Derived, "objects of each kind"
		}
		fmt.Fprintf(b, "## %s\n\n%s Runs: %d, medians. %s, %d cores, %s, %s; load before %.1f.\n\n", a.heading, a.text, of.Runs,
			of.Machine.CPU, of.Machine.Cores, strings.Join(of.Machine.Versions, ", "), of.Machine.Date, of.Machine.LoadBefore)
		if of.Note != "" {
			fmt.Fprintf(b, "> **%s**\n\n", of.Note)
		}
		for _, pods := range of.pods() {
			if pods > 0 && a.metrics != nil {
				fmt.Fprintf(b, "%s %s:\n\n", count(pods), what)
			}
			if a.metrics != nil {
				writeTable(b, of, pods, titles, a.metrics)
			}
			writeSpread(b, of, pods, titles)
			for _, m := range []Metric{HeapTotal, Received, BootstrapCPU} {
				if len(of.ats(m)) > 1 {
					writeAt(b, of, titles, pods, m, "replicas")
				}
			}
		}
	}
}

// writeSpread compares the CPU time per event with that of kates, run by run: what else runs on
// the machine changes from run to run.
func writeSpread(b *strings.Builder, r *Results, pods int, titles []Title) {
	ours := r.runs(pods, ratioTo, EventCPU, 0)
	for _, t := range titles {
		var ratios []float64
		for run, v := range r.runs(pods, t.Consumer, EventCPU, 0) {
			if ours[run] > 0 && t.Consumer != ratioTo {
				ratios = append(ratios, v/ours[run])
			}
		}
		if len(ratios) > 0 {
			least, most := stats.Spread(ratios)
			fmt.Fprintf(b, "CPU per event of %s to that of kates, by runs: median %s, least %s, most %s.\n\n",
				t.Text, number(stats.Median(ratios)), number(least), number(most))
		}
	}
}

// pods returns the numbers of pods with samples, in order.
func (r *Results) pods() (all []int) {
	for _, s := range r.Samples {
		if !slices.Contains(all, s.Pods) {
			all = append(all, s.Pods)
		}
	}
	slices.Sort(all)
	return all
}
