package rules

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = "../../../docs/metrics.md"

// metric is one of docs/metrics.md, which a test of kates/prometheus compares with the program.
type metric struct {
	kind   string
	labels []string
}

var row = regexp.MustCompile("(?m)^\\| `(kates_\\w+)` \\| (counter|gauge|histogram) \\| ([\\w, ]*) \\|")

// known returns the metrics by name, with the series of histograms.
func known(t testing.TB) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	all := map[string]metric{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		// Prometheus adds job and instance, and who runs it in Kubernetes namespace and pod.
		names := []string{"__name__", "cluster", "job", "instance", "namespace", "pod"}
		if m[3] != "" {
			names = append(names, strings.Split(m[3], ", ")...)
		}
		if m[2] != "histogram" {
			all[m[1]] = metric{m[2], names}
			continue
		}
		for suffix, more := range map[string][]string{"_bucket": {"le"}, "_sum": nil, "_count": nil} {
			all[m[1]+suffix] = metric{"counter", slices.Concat(names, more)}
		}
	}
	require.Greater(t, len(all), 50)
	return all
}

// parse parses PromQL.
func parse(t testing.TB, text string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	require.NoError(t, err, text)
	return expr
}

// misuses returns what is wrong with an expression: metrics and labels that do not exist, rates of
// gauges, and counters without a rate.
func misuses(expr parser.Expr, known map[string]metric) (wrong []string) {
	grouped := func(names []string, what string) {
		for _, name := range names {
			if !slices.ContainsFunc(slices.Collect(valuesOf(known)), func(m metric) bool { return slices.Contains(m.labels, name) }) {
				wrong = append(wrong, what+" by a label that no metric has: "+name)
			}
		}
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			m, ok := known[n.Name]
			if !ok {
				wrong = append(wrong, "no such metric: "+n.Name)
				return nil
			}
			for _, matcher := range n.LabelMatchers {
				if !slices.Contains(m.labels, matcher.Name) {
					wrong = append(wrong, n.Name+" has no label "+matcher.Name)
				}
			}
			if rated := slices.ContainsFunc(path, isRate); rated != (m.kind == "counter") {
				wrong = append(wrong, n.Name+" is a "+m.kind)
			}
		case *parser.AggregateExpr:
			grouped(n.Grouping, "it aggregates")
			wrong = append(wrong, missing(n, known)...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				grouped(n.VectorMatching.MatchingLabels, "it matches")
			}
		}
		return nil
	})
	return wrong
}

// missing returns the labels by which an aggregation groups, and that no metric beneath it has.
func missing(n *parser.AggregateExpr, known map[string]metric) (wrong []string) {
	if n.Without {
		return nil
	}
	for _, name := range n.Grouping {
		has := false
		for _, matchers := range parser.ExtractSelectors(n.Expr) {
			i := slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel })
			has = has || i >= 0 && slices.Contains(known[matchers[i].Value].labels, name)
		}
		if !has {
			wrong = append(wrong, "it aggregates by "+name+", which "+n.Expr.String()+" has not")
		}
	}
	return wrong
}

func isRate(n parser.Node) bool {
	call, ok := n.(*parser.Call)
	return ok && slices.Contains([]string{"rate", "increase", "irate"}, call.Func.Name)
}

func valuesOf(all map[string]metric) func(func(metric) bool) {
	return func(yield func(metric) bool) {
		for _, m := range all {
			if !yield(m) {
				return
			}
		}
	}
}

func TestWhatDoesNotExistIsFound(t *testing.T) {
	all := known(t)
	for text, want := range map[string]string{
		`kates_nonsense > 0`:                         "no such metric: kates_nonsense",
		`kates_clients{nonsense="x"}`:                "kates_clients has no label nonsense",
		`sum by (nonsense) (kates_clients)`:          "it aggregates by a label that no metric has: nonsense",
		`sum by (watch) (kates_clients)`:             "it aggregates by watch, which kates_clients has not",
		`rate(kates_clients[5m])`:                    "kates_clients is a gauge",
		`kates_requests_total > 1`:                   "kates_requests_total is a counter",
		`kates_clients > ignoring (a) kates_watches`: "it matches by a label that no metric has: a",
	} {
		require.Contains(t, misuses(parse(t, text), all), want)
	}
	require.Empty(t, misuses(parse(t, `sum by (cluster) (rate(kates_requests_total{code="200"}[5m]))`), all))
}
