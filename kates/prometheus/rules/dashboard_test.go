package rules

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type dataSource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	DataSource  dataSource `json:"datasource"`
	GridPos     struct {
		H, W, X, Y int
	} `json:"gridPos"`
	Targets []struct {
		Expr       string     `json:"expr"`
		Legend     string     `json:"legendFormat"`
		DataSource dataSource `json:"datasource"`
	} `json:"targets"`
}

type dashboard struct {
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

func load(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../dashboards/kates.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// filled is an expression of the dashboard with values in place of Grafana's variables.
var filled = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$cluster", ".*")

func TestTheDashboardNamesOnlyMetricsAndLabelsThatExist(t *testing.T) {
	all, shown := known(t), map[string]bool{}
	for _, p := range load(t).Panels {
		for _, target := range p.Targets {
			expr := filled.Replace(target.Expr)
			assert.Empty(t, misuses(parse(t, expr), all), p.Title)
			assert.NotContains(t, expr, "$", "a variable that there is not")
			assert.Contains(t, target.Expr, `job=~"$job"`, p.Title)
			assert.Contains(t, target.Expr, `cluster=~"$cluster"`, p.Title)
			for name := range all {
				shown[name] = shown[name] || strings.Contains(expr, name+"{")
			}
			for _, part := range strings.Split(target.Legend, "{{")[1:] {
				label, _, _ := strings.Cut(part, "}}")
				assert.Contains(t, expr, label, "%s: the legend has a label that the expression has not", p.Title)
			}
		}
	}
	for name := range all {
		if !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") && !unshown[name] {
			assert.True(t, shown[name], "no panel shows %s", name)
		}
	}
}

// unshown are metrics that another one in the dashboard tells better.
var unshown = map[string]bool{
	"kates_query_objects": true, "kates_query_bytes": true, "kates_query_untaken_objects": true, // by stream, and by age
	"kates_stream_listeners": true, "kates_stream_bookmarks_total": true, "kates_stream_listing_objects": true,
	"kates_stream_staleness_seconds": true, "kates_streams": true, // by query
	"kates_watch_updates_total": true, "kates_watch_changed_objects_total": true, "kates_reconcile_retries_total": true,
	"kates_leader_elections": true, "kates_shard_groups": true,
	"kates_derived_entries": true, "kates_derived_updates_total": true,
}

func TestTheDashboardIsWholeAndItsPanelsHaveRoom(t *testing.T) {
	d := load(t)
	assert.Equal(t, "kates", d.Title)
	require.Len(t, d.Templating.List, 3)
	assert.Equal(t, "datasource", d.Templating.List[0].Type)
	assert.Equal(t, `label_values(kates_clients, job)`, d.Templating.List[1].Definition)
	assert.Equal(t, `label_values(kates_clients{job=~"$job"}, cluster)`, d.Templating.List[2].Definition)
	ids, taken, rows := map[int]bool{}, map[[2]int]string{}, []string{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels have the number %d", p.ID)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Empty(t, taken[[2]int{x, y}], "%q is on it", p.Title)
				assert.Less(t, x, 24, p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		assert.NotEmpty(t, p.Description, p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		assert.Equal(t, dataSource{"prometheus", "${datasource}"}, p.DataSource, p.Title)
		for _, target := range p.Targets {
			assert.Equal(t, p.DataSource, target.DataSource, p.Title)
		}
	}
	assert.Equal(t, []string{"Is it right?", "Is it late?", "What does it cost?", "What does it do?"}, rows)
}
