package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var titles = []Title{
	{Consumer: "kates", Text: "kates"}, {Consumer: "informers", Text: "informers"}, {Consumer: "reencode", Text: "re-encode"},
	{Consumer: "kates-full", Text: "kates, full", Minor: true},
}

// sample has two sizes and three runs. In run 2 everything was twice as slow.
func sample() *Results {
	r := &Results{Runs: 3, Updates: 2000, ChangesAt: 10000, Machine: Machine{CPU: "a CPU", Cores: 4, Versions: []string{"kates v1"}}}
	for _, pods := range []int{1000, 10000} {
		r.Sizes = append(r.Sizes, Size{Pods: pods, JSONBytes: 6600, ProtobufBytes: 4700})
		for run, slow := range []float64{1, 2, 1.5} {
			n := slow * float64(pods)
			r.Add(pods, run+1, "kates", RefreshTime, n/1e6)
			r.Add(pods, run+1, "kates", CloneTime, n/2e6)
			r.Add(pods, run+1, "informers", RefreshTime, n/3e4)
			r.Add(pods, run+1, "kates", ChurnStale, 0)
			r.Add(pods, run+1, "kates", HeapTotal, n/1e3)
			r.Add(pods, run+1, "kates-full", HeapPerObject, 10000)
			r.Add(pods, run+1, "informers", HeapPerObject, 10000)
		}
	}
	for _, n := range []int{1, 10, 100} {
		r.AddAt(10000, 1, "kates", ChangesTime, n, float64(n))
	}
	r.Startup = []Startup{{Consumer: "kates", Requests: []string{"WATCH /api/v1/pods", "GET /apis"}}}
	return r
}

// verdictsOf returns the verdicts at a number of pods, by text.
func verdictsOf(r *Results, pods int) map[string]verdict {
	byText := map[string]verdict{}
	for _, v := range verdicts(r) {
		if v.pods == pods {
			byText[v.text] = v
		}
	}
	return byText
}

func TestTargetsAreJudgedByPairsOfRuns(t *testing.T) {
	for text := range verdictsOf(sample(), 1000) {
		assert.NotContains(t, text, "Refresh", "of large sizes only")
	}
	byText := verdictsOf(sample(), 10000)
	faster := byText["Refresh after 1 change: 0.05× typed informers + listers"]
	assert.InDelta(t, 0.03, faster.value, 1e-9)
	assert.True(t, faster.hit())
	assert.Equal(t, "3 of 3", faster.inSomeRuns)
	clone := byText["Refresh after 1 change: no slower than a clone of the pointer slices"]
	assert.InDelta(t, 2, clone.value, 1e-9)
	assert.False(t, clone.hit())
	assert.Equal(t, "0 of 3", clone.inSomeRuns)
	assert.True(t, byText["Churn: no stale objects"].hit())
	assert.True(t, byText["Live heap per object, everything kept: 1.0× typed informers"].hit(), "at most is enough")
	assert.NotContains(t, byText, "Refresh after 1 change: 10,000× faster than re-encoding everything", "not measured, not judged")
}

func TestATargetMayBeALowerBound(t *testing.T) {
	r := &Results{}
	for run, rate := range []float64{1000, 2000, 1800} {
		r.AddAt(0, run, "kates", EventRate, 2, rate)
		r.AddAt(0, run, "informers", EventRate, 2, 1200)
		r.AddAt(0, run, "informers", EventRate, 4, 1)
	}
	two := verdictsOf(r, 0)["Events per second on 2 cores: 1.5× typed informers"]
	assert.True(t, two.hit())
	assert.InDelta(t, 1.5, two.value, 1e-9)
	assert.Equal(t, "2 of 3", two.inSomeRuns)
	assert.Equal(t, "≥ 1.5×", two.bound())
	two.value = 1
	assert.Equal(t, "**missed**, 1.5× under", two.word())
	assert.Len(t, verdicts(r), 1)
}

// others is a sample of what is measured apart.
func others() *Results {
	r, crowd, shards := sample(), &Results{Runs: 1, Note: "busy, too"}, &Results{Runs: 1}
	crowd.Add(1_000_000, 1, "kates", BootstrapTime, 30)
	crowd.Add(1_000_000, 1, "informers", BootstrapTime, 60)
	crowd.Add(1_000_000, 1, "kates", RefreshTime, 0.2)
	for _, replicas := range []int{1, 2, 4} {
		shards.AddAt(50_000, 1, "kates-sharded", HeapTotal, replicas, 100/float64(replicas))
	}
	r.Put(Crowd, crowd)
	r.Put(Shards, shards)
	builds := &Results{Runs: 1}
	builds.Add(0, 1, "withkates", BuildPackages, 520)
	r.Put(Builds, builds)
	r.Operators = &Operators{Runs: 1}
	r.Operators.Add(1, "kates", PhaseRestart, OperatorRequests, 12)
	r.Operators.Add(1, "cr", PhaseRestart, OperatorRequests, 7)
	return r
}

func TestTargetsOfOtherCampaignsAreJudged(t *testing.T) {
	r := others()
	crowd := verdictsOf(r, 1_000_000)
	assert.InDelta(t, 0.5, crowd["A crowd, time to the first snapshot: 0.8× typed informers"].value, 1e-9)
	refresh := crowd["A crowd, refresh after 1 change: 0.1 ms"]
	assert.Equal(t, "**missed**, 2× over", refresh.word())
	assert.Equal(t, "≤ 0.1", refresh.bound())
	shared := verdictsOf(r, 50_000)["Four replicas share, live heap of one: 0.3× that of one alone"]
	assert.InDelta(t, 0.25, shared.value, 1e-9)
	operator := verdictsOf(r, 0)["Operator, requests of a restart: 2× controller-runtime"]
	assert.InDelta(t, 12.0/7, operator.value, 1e-9)
	assert.True(t, operator.hit())
}

func TestOtherCampaignsHaveSectionsAndPlots(t *testing.T) {
	r := others()
	all := Titles{Consumers: append(titles[:3:3], Title{Consumer: "kates-sharded", Text: "kates, shared"}), Builds: []Title{{Consumer: "withkates", Text: "kates"}}}
	plots := Plots(r, all.Consumers)
	text := Markdown(r, all, plots, "")
	for _, want := range []string{
		"## A crowd\n", "> **busy, too**", "1,000,000 pods:\n", "| bootstrap, s | 30 | 60 |", "## The first build of a program\n", "| packages | 520 |",
		"## Replicas that share\n", "Live heap, MB, by replicas, at 50,000 pods:", "| 4 | 25 |", "plots/heap-replicas.svg",
		"| Operator, requests of a restart: 2× controller-runtime |  | ≤ 2× | 1.71× | 1 of 1 | hit |",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "## A warm start", "it was not measured")
	assert.Equal(t, []Series{{"kates, shared, 50,000 pods", []Point{{1, 100}, {2, 50}, {4, 25}}}}, byReplicas(r.Apart[Shards], all.Consumers))
}

func TestASectionComparesTheCostOfEventsRunByRun(t *testing.T) {
	crowd := &Results{Runs: 3}
	for run, cost := range [][2]float64{{10, 10}, {20, 30}, {80, 40}} {
		crowd.Add(1000, run, "kates", EventCPU, cost[0])
		crowd.Add(1000, run, "informers", EventCPU, cost[1])
	}
	r := &Results{}
	r.Put(Crowd, crowd)
	text := Markdown(r, Titles{Consumers: titles}, nil, "")
	assert.Contains(t, text, "| CPU per event, µs | 20 | 30 |")
	assert.Contains(t, text, "by runs: median 1, least 0.5, most 1.5.", "the ratio of the medians is 1.5")
}

func TestAPlotShowsWhatFieldsTake(t *testing.T) {
	r := sample()
	for _, pods := range []int{1000, 10000} {
		r.Add(pods, 1, "all", HeapPerObject, 4000)
		r.Add(pods, 1, "six", HeapPerObject, 400)
	}
	got := byFields(r, []Title{{Consumer: "all", Text: "all", Fields: 90}, {Consumer: "informers"}, {Consumer: "six", Minor: true, Fields: 6}})
	assert.Equal(t, []Series{{"1,000 pods", []Point{{6, 400}, {90, 4000}}}, {"10,000 pods", []Point{{6, 400}, {90, 4000}}}}, got)
}

func TestTheReportSaysMediansRatiosAndVerdicts(t *testing.T) {
	r := sample()
	r.Note = "a busy machine"
	text := Markdown(r, Titles{Consumers: titles}, Plots(r, titles), "## Notes\n\nwhy\n\n\n")
	for _, want := range []string{
		"> **a busy machine**", "| CPU | a CPU, 4 cores |", "| versions | kates v1 |", "6,600 bytes as JSON, 4,700 as protobuf",
		"## 10,000 pods", "| refresh after 1 change, ms | 0.015 | 0.5 |", "| refresh after 1 change, ms | 33.3× |",
		"| 10,000 | ≤ 0.05× | 0.03× | 3 of 3 | hit |", "| 10,000 | ≤ 1× | 2× | 0 of 3 | **missed**, 2× over |",
		"\n\n## Notes\n\nwhy\n\n## 1,000 pods", "![Live heap](plots/heap-objects.svg)", "- kates: `GET /apis`, `WATCH /api/v1/pods`",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "re-encode |", "a consumer that was not measured has no column")
	assert.NotContains(t, text, "write to visible", "nor has a metric a row")
	assert.NotContains(t, text, "NaN")
	assert.Equal(t, text, Markdown(r, Titles{Consumers: titles}, Plots(r, titles), "## Notes\n\nwhy\n\n\n"))
	for line := range strings.Lines(text) {
		assert.NotContains(t, strings.TrimSuffix(line, "\n"), "\n")
	}
}

func TestPlotsWithoutDataAreLeftOut(t *testing.T) {
	r := sample()
	var files []string
	for _, p := range Plots(r, titles) {
		files = append(files, p.File)
	}
	assert.Equal(t, []string{"refresh-objects.svg", "refresh-changes.svg", "heap-objects.svg"}, files)
	assert.Empty(t, Plots(&Results{}, titles))
}

func TestResultsAreWrittenAndReadAgain(t *testing.T) {
	r, dir := sample(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, notesName), []byte("## Why\n"), 0o600))
	require.NoError(t, WriteAll(r, Titles{Consumers: titles}, dir))
	text, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "\n## Why\n")
	again, err := ReadFrom(dir)
	require.NoError(t, err)
	assert.Equal(t, r, again)
	for _, name := range []string{"RESULTS.md", "plots/refresh-objects.svg"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.NotEmpty(t, content)
	}
	_, err = ReadFrom(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, rawName), []byte("{"), 0o600))
	_, err = ReadFrom(dir)
	require.ErrorContains(t, err, "read the results in")
}

func TestOlderResultsAreKeptOfSizesThatWereNotMeasuredAgain(t *testing.T) {
	old := &Results{Sizes: []Size{{Pods: 10}, {Pods: 20}}, Startup: []Startup{{Consumer: "kates"}, {Consumer: "informers"}}}
	old.Add(10, 1, "kates", RefreshTime, 1)
	old.Add(20, 1, "kates", RefreshTime, 2)
	old.Add(0, 1, "kates", EventRate, 3)
	now := &Results{Sizes: []Size{{Pods: 10}}, Startup: []Startup{{Consumer: "kates", Requests: []string{"GET"}}}}
	now.Add(10, 1, "kates", RefreshTime, 4)
	now.Keep(old)
	require.Equal(t, []Size{{Pods: 10}, {Pods: 20}}, now.Sizes)
	require.Equal(t, []Startup{{Consumer: "kates", Requests: []string{"GET"}}, {Consumer: "informers"}}, now.Startup)
	for pods, want := range map[int]float64{10: 4, 20: 2} {
		got, ok := now.median(pods, "kates", RefreshTime, 0)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok := now.median(0, "kates", EventRate, 0)
	require.True(t, ok)
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.00123456: "0.00123", 0.5: "0.5", 1.005: "1", 12.345: "12.3", 99.96: "100", 100: "100",
		2405: "2,405", 1234567: "1,234,567", -12.345: "-12.3", 0.000001: "1e-06", 0.1: "0.1",
	} {
		assert.Equal(t, want, number(v), v)
	}
	assert.Equal(t, "10,000", count(10000))
}

func TestAPlotIsOneWellFormedText(t *testing.T) {
	p := Plot{Title: "a < b & c", XLabel: "x", YLabel: "y", LogX: true, LogY: true, Series: []Series{
		{"zero is not on a logarithmic axis", []Point{{1, 0}, {10, 20}, {100, 3000}}},
		{"nothing", nil},
	}}
	svg := p.SVG()
	assert.Equal(t, svg, p.SVG())
	assert.Contains(t, svg, "a &lt; b &amp; c")
	assert.Equal(t, 2, strings.Count(svg, "<circle"))
	assert.NotContains(t, svg, "NaN")
	assert.NotContains(t, svg, "Inf")
	assertXML(t, svg)
	assertXML(t, Plot{}.SVG())
	assertXML(t, Plot{Series: []Series{{"one", []Point{{5, 5}}}}}.SVG())
}

func assertXML(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func TestAxesEndAtRoundNumbers(t *testing.T) {
	linear := axis{least: 1000, most: 47000}.rounded()
	assert.Equal(t, []float64{0, 10000, 20000, 30000, 40000, 50000}, linear.ticks())
	assert.InDelta(t, 0.5, linear.place(25000), 1e-9)
	logarithmic := axis{least: 3, most: 1000, log: true}.rounded()
	assert.InDeltaSlice(t, []float64{1, 10, 100, 1000}, logarithmic.ticks(), 1e-6)
	assert.InDelta(t, 1.0/3, logarithmic.place(10), 1e-9)
	one := axis{least: 1, most: 1, log: true}.rounded()
	assert.Equal(t, []float64{1, 10}, one.ticks())
	assert.Equal(t, "0.3", tickText(0.1+0.2))
}

func TestResultsOfNothingAreWrong(t *testing.T) {
	r := sample()
	require.NoError(t, Check(r))
	r.Add(1000, 1, "informers", ChurnStale, 3)
	r.Add(1000, 1, "informers", RefreshTime, 0)
	r.Add(1000, 1, "informers", ChurnLag, 0)
	err := Check(r)
	require.ErrorContains(t, err, "stale after churn of informers at 1000 pods is 3")
	require.ErrorContains(t, err, "refresh after 1 change, ms of informers")
	require.NotContains(t, err.Error(), "churn to fresh", "may be at once")
	require.Error(t, Check(&Results{}))
}
