package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kates-go/kates/bench/internal/stats"
)

// Operators holds what was measured of one operator on several libraries.
type Operators struct {
	Machine Machine `json:"machine"`
	Note    string  `json:"note,omitempty"`
	Runs    int     `json:"runs"`
	// Roots is the number of roots, with PerRoot objects each. Workers is how many reconciles ran
	// at a time.
	Roots   int `json:"roots"`
	PerRoot int `json:"perRoot"`
	Workers int `json:"workers"`
	// Changes is how many specs were changed at once, and Paced how many one after the other.
	// Drift is how many owned objects others changed or deleted.
	Changes int              `json:"changes"`
	Paced   int              `json:"paced"`
	Drift   int              `json:"drift"`
	Samples []OperatorSample `json:"samples"`
}

// OperatorSample is one number of one run of one operator.
type OperatorSample struct {
	Run      int            `json:"run"`
	Operator string         `json:"operator"`
	Phase    Phase          `json:"phase"`
	Metric   OperatorMetric `json:"metric"`
	Verb     string         `json:"verb,omitempty"` // for OperatorRequests only; empty for all
	Value    float64        `json:"value"`
}

// Phase says when something was measured.
type Phase string

// The phases, in order.
const (
	PhaseStart   Phase = "start"   // all roots exist, and nothing else
	PhaseChanges Phase = "changes" // specs change at once
	PhasePaced   Phase = "paced"   // specs change one after the other
	PhaseDrift   Phase = "drift"   // owned objects are changed or deleted
	PhaseRestart Phase = "restart" // everything is as wanted
)

// OperatorMetric says what a sample measures.
type OperatorMetric string

// These are the metrics, with their units, in the order of rows.
const (
	OperatorTime       OperatorMetric = "until all is right, s"
	OperatorP50        OperatorMetric = "until it is right p50, ms"
	OperatorP99        OperatorMetric = "until it is right p99, ms"
	OperatorIdle       OperatorMetric = "until it is idle, s"
	OperatorCPU        OperatorMetric = "CPU, s"
	OperatorServerCPU  OperatorMetric = "CPU of the API server, s"
	OperatorPeak       OperatorMetric = "peak RSS, MB"
	OperatorHeap       OperatorMetric = "live heap, MB"
	OperatorRequests   OperatorMetric = "requests"
	OperatorRefused    OperatorMetric = "requests refused"
	OperatorReconciles OperatorMetric = "reconciles"
	OperatorPerChange  OperatorMetric = "reconciles per change"
	OperatorNothing    OperatorMetric = "reconciles without a request"
	OperatorErrors     OperatorMetric = "reconciles that failed"
)

var operatorMetrics = []OperatorMetric{
	OperatorTime, OperatorP50, OperatorP99, OperatorIdle, OperatorCPU, OperatorServerCPU, OperatorPeak, OperatorHeap,
	OperatorRequests, OperatorRefused, OperatorReconciles, OperatorPerChange, OperatorNothing, OperatorErrors,
}

// mayBeZero are the metrics for which zero is a normal value.
var mayBeZero = []OperatorMetric{
	OperatorRequests, OperatorRefused, OperatorReconciles, OperatorPerChange, OperatorNothing, OperatorErrors, OperatorServerCPU,
}

// Add adds a sample.
func (o *Operators) Add(run int, operator string, p Phase, m OperatorMetric, value float64) {
	o.Samples = append(o.Samples, OperatorSample{Run: run, Operator: operator, Phase: p, Metric: m, Value: value})
}

// AddRequests adds the number of requests of a verb.
func (o *Operators) AddRequests(run int, operator string, p Phase, verb string, n int) {
	o.Samples = append(o.Samples, OperatorSample{
		Run: run, Operator: operator, Phase: p, Metric: OperatorRequests, Verb: verb, Value: float64(n),
	})
}

// Check says what is wrong with the results, on any machine.
func (o *Operators) Check() error {
	if len(o.Samples) == 0 {
		return fmt.Errorf("of operators nothing was measured")
	}
	for _, s := range o.Samples {
		if math.IsNaN(s.Value) || s.Value < 0 || s.Value == 0 && !slices.Contains(mayBeZero, s.Metric) {
			return fmt.Errorf("%s of the operator %s (%s) is %v", s.Metric, s.Operator, s.Phase, s.Value)
		}
	}
	return nil
}

// runs returns the values of one cell by run.
func (o *Operators) runs(operator string, p Phase, m OperatorMetric, verb string) map[int]float64 {
	values := make(map[int]float64)
	for _, s := range o.Samples {
		if s.Operator == operator && s.Phase == p && s.Metric == m && s.Verb == verb {
			values[s.Run] = s.Value
		}
	}
	return values
}

// cell is the median over the runs, and its ratio to that of kates, computed run by run.
func (o *Operators) cell(operator string, p Phase, m OperatorMetric) string {
	values := o.runs(operator, p, m, "")
	if len(values) == 0 {
		return ""
	}
	text := number(medianOf(values))
	if ratio := stats.PairRatio(values, o.runs(ratioTo, p, m, "")); operator != ratioTo && !math.IsNaN(ratio) && ratio > 0 {
		text += " (" + number(ratio) + "×)"
	}
	return text
}

func medianOf(values map[int]float64) float64 {
	var all []float64
	for _, v := range values {
		all = append(all, v)
	}
	return stats.Median(all)
}

// writeOperators writes the section of the operators.
func writeOperators(b *strings.Builder, o *Operators, titles []Title) {
	if o == nil {
		return
	}
	fmt.Fprintf(b, "## The same operator\n\n%s roots with %d objects each, %d workers. Runs: %d; medians, in parentheses as multiples of kates (medians over pairs). "+
		"%s, %d cores, %s, %s; load before %.1f.\n\n",
		count(o.Roots), o.PerRoot, o.Workers, o.Runs, o.Machine.CPU, o.Machine.Cores, strings.Join(o.Machine.Versions, ", "), o.Machine.Date, o.Machine.LoadBefore)
	if o.Note != "" {
		fmt.Fprintf(b, "> **%s**\n\n", o.Note)
	}
	titles = o.withRuns(titles)
	lines := []string{"lines of code"}
	for _, t := range titles {
		text := ""
		if t.Lines > 0 {
			text = count(t.Lines)
		}
		lines = append(lines, text)
	}
	writeRows(b, titles, [][]string{lines})
	for _, p := range []struct {
		phase Phase
		text  string
	}{
		{PhaseStart, "From the start, with the roots there and nothing else"},
		{PhaseChanges, count(o.Changes) + " changes of specs at once"},
		{PhasePaced, count(o.Paced) + " changes of specs, each after the last one has had its effect"},
		{PhaseDrift, count(o.Drift) + " owned objects changed or deleted by others, at once"},
		{PhaseRestart, "Started again, with nothing to do"},
	} {
		o.writePhase(b, titles, p.phase, p.text)
	}
	o.writeVerbs(b, titles)
}

// withRuns returns the titles of the measured operators, with the number of runs if there were
// fewer.
func (o *Operators) withRuns(titles []Title) (all []Title) {
	for _, t := range titles {
		runs := make(map[int]bool)
		for _, s := range o.Samples {
			if s.Operator == t.Consumer {
				runs[s.Run] = true
			}
		}
		if n := len(runs); n > 0 && n < o.Runs {
			t.Text += fmt.Sprintf(" (runs: %d)", n)
		}
		if len(runs) > 0 {
			all = append(all, t)
		}
	}
	return all
}

func (o *Operators) writePhase(b *strings.Builder, titles []Title, p Phase, text string) {
	var rows [][]string
	for _, m := range operatorMetrics {
		row := []string{string(m)}
		for _, t := range titles {
			row = append(row, o.cell(t.Consumer, p, m))
		}
		rows = append(rows, row)
	}
	if !slices.ContainsFunc(o.Samples, func(s OperatorSample) bool { return s.Phase == p }) {
		return
	}
	b.WriteString(text + ":\n\n")
	writeRows(b, titles, rows)
}

// writeVerbs lists the requests of each phase by verb.
func (o *Operators) writeVerbs(b *strings.Builder, titles []Title) {
	var rows [][]string
	for _, p := range []Phase{PhaseStart, PhaseChanges, PhasePaced, PhaseDrift, PhaseRestart} {
		row := []string{string(p)}
		for _, t := range titles {
			row = append(row, o.verbs(t.Consumer, p))
		}
		rows = append(rows, row)
	}
	b.WriteString("Requests by verb:\n\n")
	writeRows(b, titles, rows)
}

func (o *Operators) verbs(operator string, p Phase) string {
	var verbs, parts []string
	for _, s := range o.Samples {
		if s.Operator == operator && s.Phase == p && s.Verb != "" && !slices.Contains(verbs, s.Verb) {
			verbs = append(verbs, s.Verb)
		}
	}
	slices.Sort(verbs)
	for _, v := range verbs {
		parts = append(parts, fmt.Sprintf("%s %s", v, number(medianOf(o.runs(operator, p, OperatorRequests, v)))))
	}
	return strings.Join(parts, ", ")
}
