package rules

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alerts returns the rules by name. They are valid, with their templates.
func alerts(t testing.TB) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../alerts/kates.yaml", false, model.UTF8Validation,
		parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	all := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			require.NotContains(t, all, r.Alert)
			all[r.Alert] = r
		}
	}
	return all
}

func TestEachAlertNamesOnlyWhatExistsAndSaysWhatToDo(t *testing.T) {
	metrics := known(t)
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	for name, r := range alerts(t) {
		assert.Empty(t, misuses(parse(t, r.Expr), metrics), name)
		assert.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], name)
		assert.NotEmpty(t, r.Annotations["summary"], name)
		assert.NotEmpty(t, r.Annotations["description"], name)
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "docs/metrics.md#")
		assert.Equal(t, strings.ToLower(name), anchor)
		assert.Equal(t, 1, strings.Count(string(text), "\n### "+name+"\n"), "docs/metrics.md says what to do: %s", name)
		for _, annotation := range []string{"summary", "description"} {
			for _, part := range strings.Split(r.Annotations[annotation], "$labels.")[1:] {
				label, _, _ := strings.Cut(part, " ")
				assert.True(t, keeps(parse(t, r.Expr), label, metrics), "%s: no label %s", name, label)
			}
		}
	}
	assert.Equal(t, len(alerts(t)), strings.Count(string(text), "\n### Kates"), "an alert that there is not")
}

// keeps reports whether the results of an expression have a label.
func keeps(e parser.Expr, label string, known map[string]metric) bool {
	switch n := e.(type) {
	case *parser.AggregateExpr:
		if n.Without {
			return !slices.Contains(n.Grouping, label) && keeps(n.Expr, label, known)
		}
		return slices.Contains(n.Grouping, label)
	case *parser.BinaryExpr:
		return keeps(n.LHS, label, known) || n.LHS.Type() == parser.ValueTypeScalar && keeps(n.RHS, label, known)
	case *parser.Call:
		return keeps(n.Args[len(n.Args)-1], label, known)
	case *parser.MatrixSelector:
		return keeps(n.VectorSelector, label, known)
	case *parser.VectorSelector:
		return slices.Contains(known[n.Name].labels, label)
	case *parser.ParenExpr:
		return keeps(n.Expr, label, known)
	}
	return false
}

// firing returns the labels for which an alert fires at a time, after its "for".
func firing(t *testing.T, r rulefmt.Rule, series string, at time.Duration) []string {
	t.Helper()
	// One sample a minute.
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.TrimSpace(series))
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	end := time.Unix(0, 0).Add(at)
	begin := end.Add(-time.Duration(r.For))
	query, err := engine.NewRangeQuery(t.Context(), storage, promql.NewPrometheusQueryOpts(false, 0, nil), r.Expr, begin, end, time.Minute)
	require.NoError(t, err)
	defer query.Close()
	matrix, err := query.Exec(t.Context()).Matrix()
	require.NoError(t, err)
	all := []string{}
	for _, s := range matrix {
		if len(s.Floats) == int(end.Sub(begin)/time.Minute)+1 {
			all = append(all, s.Metric.DropReserved(func(name string) bool { return name == model.MetricNameLabel }).String())
		}
	}
	slices.Sort(all)
	return all
}

// soon is when the expression of an alert holds in its first case, for less than its "for".
var soon = map[string]time.Duration{
	"KatesNotComplete": 6 * time.Minute, "KatesQueryStale": 6 * time.Minute,
	"KatesQueryForbidden": 4 * time.Minute, "KatesQueryMissing": 4 * time.Minute,
	"KatesInvalidObjects": 14 * time.Minute, "KatesSnapshotsNotTaken": 10 * time.Minute,
	"KatesOwnWritesPending": 6 * time.Minute, "KatesOwnWritesUnsettled": 14 * time.Minute,
	"KatesReconcilesFail": 14 * time.Minute, "KatesKeyKeepsFailing": 14 * time.Minute,
	"KatesQueueStuck": 15 * time.Minute, "KatesNoLeader": time.Minute, "KatesLeaseFails": 4 * time.Minute,
	"KatesShardLost": 4 * time.Minute, "KatesRelistStorm": 8 * time.Minute,
	"KatesWatchesEndEarly": 10 * time.Minute, "KatesRequestsFail": 9 * time.Minute,
	"KatesRequestsSlow": 14 * time.Minute,
}

func TestAnAlertWaitsForItsTime(t *testing.T) {
	for name, r := range alerts(t) {
		t.Run(name, func(t *testing.T) {
			at, waits := soon[name]
			require.Equal(t, waits, r.For > 0, "a case for each alert that waits, and for no other")
			if !waits {
				return
			}
			assert.Empty(t, firing(t, r, cases[name][0].series, at))
			r.For = 0
			assert.NotEmpty(t, firing(t, r, cases[name][0].series, at), "the expression holds")
		})
	}
}

// each case has series that fire beside series that do not.
var cases = map[string][]struct {
	series string
	at     time.Duration
	fires  []string
}{
	"KatesNotComplete": {{
		series: `
			kates_watch_incomplete_age_seconds{watch="late"} 0+60x60
			kates_watch_incomplete_age_seconds{watch="soon"} 0 60 120 0x60
			kates_watch_incomplete_age_seconds{watch="done"} 0x60`,
		at: 7 * time.Minute, fires: []string{`{watch="late"}`},
	}, {
		series: `kates_watch_incomplete_age_seconds{watch="late"} 0+60x60`, at: 5 * time.Minute,
	}},
	"KatesQueryStale": {{
		series: `
			kates_query_staleness_seconds{watch="w",query="silent"} 0+60x60
			kates_queries{watch="w",query="silent",state="retrying"} 1x60
			kates_queries{watch="w",query="silent",state="forbidden"} 0x60
			kates_query_staleness_seconds{watch="w",query="quiet"} 50x60
			kates_query_staleness_seconds{watch="w",query="refused"} 0+60x60
			kates_queries{watch="w",query="refused",state="forbidden"} 1x60`,
		at: 10 * time.Minute, fires: []string{`{query="silent", watch="w"}`},
	}},
	"KatesQueryForbidden": {{
		series: `
			kates_queries{watch="w",query="refused",state="forbidden"} 1x60
			kates_query_absent{watch="w",query="refused"} 0x60
			kates_queries{watch="w",query="optional",state="forbidden"} 1x60
			kates_query_absent{watch="w",query="optional"} 1x60
			kates_queries{watch="w",query="allowed",state="forbidden"} 0x60
			kates_queries{watch="w",query="missing",state="missing"} 1x60
			kates_queries{watch="w",query="shortly",state="forbidden"} 0 0 1 1 1 0x60`,
		at: 7 * time.Minute, fires: []string{`{query="refused", state="forbidden", watch="w"}`},
	}},
	"KatesQueryMissing": {{
		series: `
			kates_queries{watch="w",query="missing",state="missing"} 1x60
			kates_queries{watch="w",query="optional",state="missing"} 1x60
			kates_query_absent{watch="w",query="optional"} 1x60
			kates_queries{watch="w",query="refused",state="forbidden"} 1x60`,
		at: 6 * time.Minute, fires: []string{`{query="missing", state="missing", watch="w"}`},
	}},
	"KatesInvalidObjects": {{
		series: `
			kates_query_invalid_objects{query="bad"} 2x60
			kates_query_invalid_objects{query="mended"} 2x10 0x60
			kates_query_invalid_objects{query="good"} 0x60`,
		at: 20 * time.Minute, fires: []string{`{query="bad"}`},
	}},
	"KatesSnapshotsNotTaken": {{
		series: `
			kates_query_untaken_age_seconds{query="hangs"} 0+60x60
			kates_query_untaken_age_seconds{query="busy"} 0 60 120 180 0 60 120 0x60`,
		at: 15 * time.Minute, fires: []string{`{query="hangs"}`},
	}},
	"KatesOwnWritesPending": {{
		series: `
			kates_own_writes_pending_age_seconds{resource="late"} 0+60x60
			kates_own_writes_pending_age_seconds{resource="shown"} 0 60 0x60`,
		at: 8 * time.Minute, fires: []string{`{resource="late"}`},
	}},
	"KatesOwnWritesUnsettled": {{
		series: `
			kates_own_writes_unsettled{resource="x"} 1x60
			kates_own_writes_unsettled{resource="y"} 1 1 0x60`,
		at: 16 * time.Minute, fires: []string{`{resource="x"}`},
	}},
	"KatesReconcilesFail": {{
		series: `
			kates_reconciles_total{loop="bad",result="success"} 0x60
			kates_reconciles_total{loop="bad",result="error"} 0+10x60
			kates_reconciles_total{loop="worse",result="success"} 0x60
			kates_reconciles_total{loop="worse",result="terminal"} 0+10x60
			kates_reconciles_total{loop="some",result="success"} 0+10x60
			kates_reconciles_total{loop="some",result="error"} 0+5x60
			kates_reconciles_total{loop="idle",result="success"} 5x60
			kates_reconciles_total{loop="idle",result="error"} 5x60
			kates_reconciles_total{loop="cut",result="cut"} 0+5x60`,
		at: 30 * time.Minute, fires: []string{`{loop="bad"}`, `{loop="worse"}`},
	}},
	"KatesKeyKeepsFailing": {{
		series: `
			kates_reconcile_failing_attempts{loop="bad"} 11+1x60
			kates_reconcile_failing_attempts{loop="few"} 3x60`,
		at: 16 * time.Minute, fires: []string{`{loop="bad"}`},
	}},
	"KatesQueueStuck": {{
		series: `
			kates_partition_queue_age_seconds{watch="stuck"} 0+60x60
			kates_partition_queue_age_seconds{watch="busy"} 100x60`,
		at: 17 * time.Minute, fires: []string{`{watch="stuck"}`},
	}},
	"KatesReconcileHangs": {{
		series: `
			kates_reconcile_longest_running_seconds{loop="hangs"} 0+60x60
			kates_reconcile_longest_running_seconds{loop="slow"} 600x60`,
		at: 31 * time.Minute, fires: []string{`{loop="hangs"}`},
	}},
	"KatesNoLeader": {{
		series: `
			kates_leader_leading{job="none",instance="a"} 0x60
			kates_leader_elections{job="none",instance="a"} 1x60
			kates_leader_leading{job="none",instance="b"} 0x60
			kates_leader_elections{job="none",instance="b"} 1x60
			kates_leader_leading{job="led",instance="a"} 0x60
			kates_leader_elections{job="led",instance="a"} 1x60
			kates_leader_leading{job="led",instance="b"} 1x60
			kates_leader_elections{job="led",instance="b"} 1x60
			kates_leader_leading{job="without",instance="a"} 0x60
			kates_leader_elections{job="without",instance="a"} 0x60
			kates_leader_leading{job="changes",instance="a"} 1 1 1 0x60
			kates_leader_leading{job="changes",instance="b"} 0 0 0 0 1x60
			kates_leader_elections{job="changes",instance="a"} 1x60
			kates_leader_elections{job="changes",instance="b"} 1x60`,
		at: 5 * time.Minute, fires: []string{`{job="none"}`},
	}},
	"KatesLeaseFails": {{
		series: `
			kates_leader_errors{instance="a"} 1x60
			kates_shard_errors{instance="a"} 0x60
			kates_leader_errors{instance="b"} 0x60
			kates_shard_errors{instance="b"} 1x60
			kates_leader_errors{instance="c"} 0x60
			kates_shard_errors{instance="c"} 0x60`,
		at: 6 * time.Minute, fires: []string{`{instance="a"}`, `{instance="b"}`},
	}},
	"KatesShardLost": {{
		series: `
			kates_shard_memberships{instance="out"} 0x60
			kates_shard_groups{instance="out"} 1x60
			kates_shard_memberships{instance="in"} 1x60
			kates_shard_groups{instance="in"} 1x60
			kates_shard_memberships{instance="none"} 0x60
			kates_shard_groups{instance="none"} 0x60`,
		at: 6 * time.Minute, fires: []string{`{instance="out"}`},
	}},
	"KatesRelistStorm": {{
		series: `
			kates_stream_lists_total{resource="storm",form="",reason="expired"} 0+1x60
			kates_stream_lists_total{resource="storm",form="",reason="first"} 1x60
			kates_streams{resource="storm",form="",state="synced"} 1x60
			kates_streams{resource="storm",form="",state="retrying"} 0x60
			kates_stream_lists_total{resource="many",form="",reason="expired"} 0+1x60
			kates_streams{resource="many",form="",state="synced"} 100x60
			kates_stream_lists_total{resource="new",form="",reason="first"} 0+1x60
			kates_streams{resource="new",form="",state="synced"} 1x60
			kates_stream_lists_total{resource="once",form="",reason="own_writes"} 0x20 1x60
			kates_streams{resource="once",form="",state="synced"} 1x60`,
		at: 30 * time.Minute, fires: []string{`{resource="storm"}`},
	}},
	"KatesWatchesEndEarly": {{
		series: `
			kates_stream_watches_total{resource="cut",form="",reason="short"} 0+2x60
			kates_streams{resource="cut",form="",state="synced"} 1x60
			kates_stream_watches_total{resource="well",form="",reason="ended"} 0+2x60
			kates_stream_watches_total{resource="well",form="",reason="error"} 0x60
			kates_streams{resource="well",form="",state="synced"} 1x60`,
		at: 30 * time.Minute, fires: []string{`{resource="cut"}`},
	}},
	"KatesTooManyObjects": {{
		series: `
			kates_stream_lists_total{resource="full",reason="no_room"} 0x10 1x60
			kates_stream_lists_total{resource="fits",reason="no_room"} 0x60
			kates_stream_lists_total{resource="fits",reason="expired"} 0+1x60`,
		at: 15 * time.Minute, fires: []string{`{resource="full"}`},
	}, {
		series: `kates_stream_lists_total{resource="full",reason="no_room"} 0x10 1x60`, at: 40 * time.Minute,
	}},
	"KatesServerWentBack": {{
		series: `
			kates_stream_lists_total{resource="restored",reason="history"} 0x10 1x60
			kates_stream_lists_total{resource="well",reason="history"} 0x60`,
		at: 15 * time.Minute, fires: []string{`{resource="restored"}`},
	}},
	"KatesRequestsFail": {{
		series: `
			kates_requests_total{instance="down",verb="get",resource="pods.v1",code="<error>"} 0+5x60
			kates_requests_total{instance="down",verb="list",resource="pods.v1",code="200"} 0+1x60
			kates_requests_total{instance="busy",verb="get",resource="pods.v1",code="429"} 0+5x60
			kates_requests_total{instance="busy",verb="get",resource="pods.v1",code="503"} 0+5x60
			kates_requests_total{instance="asks",verb="get",resource="pods.v1",code="404"} 0+9x60
			kates_requests_total{instance="asks",verb="get",resource="pods.v1",code="200"} 0+1x60
			kates_requests_total{instance="asks",verb="get",resource="pods.v1",code="500"} 0+1x60`,
		at: 30 * time.Minute, fires: []string{`{instance="busy"}`, `{instance="down"}`},
	}},
	"KatesRequestsSlow": {{
		series: `
			kates_request_duration_seconds_bucket{instance="slow",verb="get",le="1"} 0x60
			kates_request_duration_seconds_bucket{instance="slow",verb="get",le="8"} 0+9x60
			kates_request_duration_seconds_bucket{instance="slow",verb="get",le="+Inf"} 0+9x60
			kates_request_duration_seconds_bucket{instance="fast",verb="get",le="1"} 0+9x60
			kates_request_duration_seconds_bucket{instance="fast",verb="get",le="8"} 0+9x60
			kates_request_duration_seconds_bucket{instance="fast",verb="get",le="+Inf"} 0+9x60
			kates_request_duration_seconds_bucket{instance="lists",verb="list",le="1"} 0x60
			kates_request_duration_seconds_bucket{instance="lists",verb="list",le="8"} 0+9x60
			kates_request_duration_seconds_bucket{instance="lists",verb="list",le="+Inf"} 0+9x60`,
		at: 30 * time.Minute, fires: []string{`{instance="slow"}`},
	}},
}

func TestEachAlertFiresWhenItShouldAndAtNoOtherTime(t *testing.T) {
	all := alerts(t)
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			require.NotEmpty(t, cases[name])
			for _, c := range cases[name] {
				assert.ElementsMatch(t, c.fires, firing(t, r, c.series, c.at), "after %s", c.at)
			}
		})
	}
	assert.Len(t, cases, len(all), "a case for an alert that there is not")
}
