package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/bench/internal/stats"
)

// Gateways holds what was measured of a gateway that is written in two ways.
type Gateways struct {
	Machine Machine `json:"machine"`
	Note    string  `json:"note,omitempty"`
	Runs    int     `json:"runs"`
	// Ingresses have one host each. Endpoints are those of all Services.
	Ingresses int `json:"ingresses"`
	Services  int `json:"services"`
	Endpoints int `json:"endpoints"`
	// Rate is how many changes per second were to be made, and Lasts for how long.
	Rate  int           `json:"rate"`
	Lasts time.Duration `json:"lasts"`
	// Lines are those of code, by gateway, at the time of the measurement.
	Lines   map[string]int  `json:"lines,omitempty"`
	Samples []GatewaySample `json:"samples"`
}

// GatewaySample is one number of one run of one gateway.
type GatewaySample struct {
	Run     int           `json:"run"`
	Gateway string        `json:"gateway"`
	Phase   Phase         `json:"phase"` // PhaseStart or PhaseChanges
	Metric  GatewayMetric `json:"metric"`
	Verb    string        `json:"verb,omitempty"` // for GatewayRequests only; empty for all
	Value   float64       `json:"value"`
}

// GatewayMetric says what a sample measures.
type GatewayMetric string

// These are the metrics, with their units, in the order of rows.
const (
	GatewayActive      GatewayMetric = "until the first configuration is active, s"
	GatewayReported    GatewayMetric = "until all statuses are written, s"
	GatewayRate        GatewayMetric = "changes per second that the API server took"
	GatewayCPU         GatewayMetric = "CPU of the gateway, s"
	GatewayNginxCPU    GatewayMetric = "CPU of nginx, s"
	GatewayEndpointP50 GatewayMetric = "a change of endpoints, until nginx has them, p50, ms"
	GatewayEndpointP99 GatewayMetric = "a change of endpoints, until nginx has them, p99, ms"
	GatewayIngressP50  GatewayMetric = "a change of an Ingress, until it is active, p50, ms"
	GatewayIngressP99  GatewayMetric = "a change of an Ingress, until it is active, p99, ms"
	GatewayApplied     GatewayMetric = "configurations made"
	GatewayPushes      GatewayMetric = "times that endpoints were looked at"
	GatewayReloads     GatewayMetric = "reloads of nginx"
	GatewayPushed      GatewayMetric = "lists of endpoints sent to nginx"
	GatewayRequests    GatewayMetric = "requests to the API server"
	GatewayRefused     GatewayMetric = "requests refused"
	GatewayPeak        GatewayMetric = "peak RSS, MB"
	GatewayHeap        GatewayMetric = "live heap, MB"
)

var gatewayMetrics = []GatewayMetric{
	GatewayActive, GatewayReported, GatewayRate, GatewayCPU, GatewayNginxCPU, GatewayEndpointP50, GatewayEndpointP99,
	GatewayIngressP50, GatewayIngressP99, GatewayApplied, GatewayPushes, GatewayReloads, GatewayPushed, GatewayRequests, GatewayRefused,
	GatewayPeak, GatewayHeap,
}

// mayBeNone are the metrics for which zero is a normal value.
var mayBeNone = []GatewayMetric{GatewayNginxCPU, GatewayRequests, GatewayRefused, GatewayReloads, GatewayEndpointP50, GatewayIngressP50}

// Add adds a sample.
func (g *Gateways) Add(run int, gateway string, p Phase, m GatewayMetric, value float64) {
	g.Samples = append(g.Samples, GatewaySample{Run: run, Gateway: gateway, Phase: p, Metric: m, Value: value})
}

// AddRequests adds the number of requests of a verb.
func (g *Gateways) AddRequests(run int, gateway string, p Phase, verb string, n int) {
	g.Samples = append(g.Samples, GatewaySample{
		Run: run, Gateway: gateway, Phase: p, Metric: GatewayRequests, Verb: verb, Value: float64(n),
	})
}

// Check says what is wrong with the results, on any machine.
func (g *Gateways) Check() error {
	if len(g.Samples) == 0 {
		return fmt.Errorf("of gateways nothing was measured")
	}
	for _, s := range g.Samples {
		if math.IsNaN(s.Value) || s.Value < 0 || s.Value == 0 && !slices.Contains(mayBeNone, s.Metric) {
			return fmt.Errorf("%s of the gateway %s (%s) is %v", s.Metric, s.Gateway, s.Phase, s.Value)
		}
	}
	return nil
}

// runs returns the values of one cell by run.
func (g *Gateways) runs(gateway string, p Phase, m GatewayMetric, verb string) map[int]float64 {
	values := make(map[int]float64)
	for _, s := range g.Samples {
		if s.Gateway == gateway && s.Phase == p && s.Metric == m && s.Verb == verb {
			values[s.Run] = s.Value
		}
	}
	return values
}

// cell is the median over the runs, and its ratio to that of kates, computed run by run.
func (g *Gateways) cell(gateway string, p Phase, m GatewayMetric) string {
	values := g.runs(gateway, p, m, "")
	if len(values) == 0 {
		return ""
	}
	text := number(medianOf(values))
	ratio := stats.PairRatio(values, g.runs(ratioTo, p, m, ""))
	if m != GatewayRate && gateway != ratioTo && !math.IsNaN(ratio) && ratio > 0 {
		text += " (" + number(ratio) + "×)"
	}
	return text
}

// verbs lists the requests by verb.
func (g *Gateways) verbs(gateway string, p Phase) string {
	var verbs, parts []string
	for _, s := range g.Samples {
		if s.Gateway == gateway && s.Phase == p && s.Verb != "" && !slices.Contains(verbs, s.Verb) {
			verbs = append(verbs, s.Verb)
		}
	}
	slices.Sort(verbs)
	for _, v := range verbs {
		parts = append(parts, fmt.Sprintf("%s %s", v, number(medianOf(g.runs(gateway, p, GatewayRequests, v)))))
	}
	return strings.Join(parts, ", ")
}

// writeGateways writes the section of the gateways.
func writeGateways(b *strings.Builder, g *Gateways, titles []Title) {
	if g == nil {
		return
	}
	fmt.Fprintf(b, "## The same gateway\n\n%s Ingresses with one host and two paths each, %s Services, %s endpoints. "+
		"%s changes per second for %v: 19 of 20 replace an endpoint, the others change a path. Runs: %d; medians, in parentheses as multiples of kates (medians over pairs). "+
		"%s, %d cores, %s, %s; load before %.1f.\n\n",
		count(g.Ingresses), count(g.Services), count(g.Endpoints), count(g.Rate), g.Lasts, g.Runs,
		g.Machine.CPU, g.Machine.Cores, strings.Join(g.Machine.Versions, ", "), g.Machine.Date, g.Machine.LoadBefore)
	if g.Note != "" {
		fmt.Fprintf(b, "> **%s**\n\n", g.Note)
	}
	b.WriteString("Both translate objects, and have nginx activate the result, with the same code, and write the same statuses. " +
		"Endpoints reach nginx without a reload, at most every 50 ms. Anything else waits for a reload, one a second at most: " +
		"nginx checks and loads the whole configuration each time, which is most of the time of a change of an Ingress.\n\n")
	lines := []string{"lines of code"}
	for _, t := range titles {
		text := ""
		if n := g.Lines[t.Consumer]; n > 0 {
			text = count(n)
		}
		lines = append(lines, text)
	}
	if slices.ContainsFunc(lines[1:], func(s string) bool { return s != "" }) {
		writeRows(b, titles, [][]string{lines})
	}
	g.writePhase(b, titles, PhaseStart, "From the start, with everything there")
	g.writePhase(b, titles, PhaseChanges, "While things change, until all of it is in effect")
}

func (g *Gateways) writePhase(b *strings.Builder, titles []Title, p Phase, text string) {
	if !slices.ContainsFunc(g.Samples, func(s GatewaySample) bool { return s.Phase == p }) {
		return
	}
	var rows [][]string
	for _, m := range gatewayMetrics {
		row := []string{string(m)}
		for _, t := range titles {
			row = append(row, g.cell(t.Consumer, p, m))
		}
		rows = append(rows, row)
	}
	verbs := []string{"these by verb"}
	for _, t := range titles {
		verbs = append(verbs, g.verbs(t.Consumer, p))
	}
	after := slices.Index(gatewayMetrics, GatewayRequests) + 1
	b.WriteString(text + ":\n\n")
	writeRows(b, titles, slices.Insert(rows, after, verbs))
}
