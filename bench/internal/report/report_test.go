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

func TestTargetsAreJudgedByPairsOfRuns(t *testing.T) {
	byText := map[string]verdict{}
	for _, v := range verdicts(sample()) {
		if v.pods == 10000 {
			byText[v.text] = v
		} else {
			assert.NotContains(t, v.text, "Refresh", "of large sizes only")
		}
	}
	faster := byText[targets[0].text]
	assert.InDelta(t, 0.03, faster.value, 1e-9)
	assert.True(t, faster.hit())
	assert.Equal(t, "3 of 3", faster.inSomeRuns)
	clone := byText[targets[2].text]
	assert.InDelta(t, 2, clone.value, 1e-9)
	assert.False(t, clone.hit())
	assert.Equal(t, "0 of 3", clone.inSomeRuns)
	assert.True(t, byText["Churn: no stale objects"].hit())
	assert.True(t, byText["Live heap per object, everything kept: 1.0× typed informers"].hit(), "at most is enough")
	assert.NotContains(t, byText, targets[1].text, "not measured, not judged")
}

func TestTheReportSaysMediansRatiosAndVerdicts(t *testing.T) {
	r := sample()
	r.Note = "a busy machine"
	text := Markdown(r, Titles{Consumers: titles}, Plots(r, titles), "## Notes\n\nwhy\n\n\n")
	for _, want := range []string{
		"> **a busy machine**", "| CPU | a CPU, 4 cores |", "| versions | kates v1 |", "6,600 bytes as JSON, 4,700 as protobuf",
		"## 10,000 pods", "| refresh after 1 change, ms | 0.015 | 0.5 |", "| refresh after 1 change, ms | 33.3× |",
		"| 10,000 | 0.05× | 0.03× | 3 of 3 | hit |", "| 10,000 | 1× | 2× | 0 of 3 | **missed**, 2× over |",
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
