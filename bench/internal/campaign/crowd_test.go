package campaign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/bench/internal/consumer"
)

func TestATableOfACrowdComparesTheConsumersRunByRun(t *testing.T) {
	all, err := consumer.Select("kates kates-observed")
	require.NoError(t, err)
	o := CrowdOptions{Pods: 1000, Consumers: all, Rate: 10, Lasts: time.Second}
	one := []float64{1, 1, 1}
	rows := map[string]*crowdRow{
		"kates":          {first: one, cpu: one, peak: one, heap: one, refresh: one, events: []float64{1e-5, 2e-5, 8e-5}, allocations: []float64{7, 7, 7}},
		"kates-observed": {first: one, cpu: one, peak: one, heap: one, refresh: one, events: []float64{1e-5, 3e-5, 4e-5}, allocations: []float64{7, 7.25, 8}},
	}
	table := o.table(rows)
	assert.Contains(t, table, "| 20.0 µs | 7.00 |")
	assert.Contains(t, table, "| 30.0 µs | 7.25 |")
	assert.Contains(t, table, "by runs: median 1.000, least 0.500, most 1.500.", "the ratio of the medians is 1.5")
	o.Rate = 0
	assert.NotContains(t, o.table(rows), "by runs")
}
