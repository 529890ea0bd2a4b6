package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMedianIsTheMiddleAndLeavesTheSamplesAlone(t *testing.T) {
	samples := []float64{9, 1, 5}
	assert.Equal(t, 5.0, Median(samples))
	assert.Equal(t, []float64{9, 1, 5}, samples)
	assert.Equal(t, 3.0, Median([]float64{5, 1}))
	assert.True(t, math.IsNaN(Median(nil)))
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	var samples []float64
	for i := 200; i > 0; i-- {
		samples = append(samples, float64(i))
	}
	for p, want := range map[float64]float64{50: 100, 99: 198, 100: 200, 0.1: 1} {
		assert.Equal(t, want, Percentile(samples, p), "p%v", p)
	}
	assert.Equal(t, 7.0, Percentile([]float64{7}, 99))
	assert.True(t, math.IsNaN(Percentile(nil, 99)))
}

func TestSpreadIsTheExtremes(t *testing.T) {
	least, most := Spread([]float64{2, -1, 4})
	assert.Equal(t, []float64{-1, 4}, []float64{least, most})
	least, most = Spread(nil)
	assert.True(t, math.IsNaN(least) && math.IsNaN(most))
}

func TestRatiosAreOfRunsThatBothHave(t *testing.T) {
	a := map[int]float64{1: 10, 2: 300, 3: 8, 5: 1}
	b := map[int]float64{1: 5, 2: 100, 3: 8, 4: 1, 5: 0}
	assert.Equal(t, 2.0, PairRatio(a, b), "the median of 2, 3 and 1, not the ratio of medians")
	assert.True(t, math.IsNaN(PairRatio(a, map[int]float64{9: 1})))
}
