// Package stats summarizes samples: medians, percentiles, and ratios of pairs of runs.
package stats

import (
	"math"
	"slices"
)

// Median returns the middle of the samples, or the mean of the two in the middle. It is NaN for
// no samples. The samples may be in any order, and are not changed.
func Median(samples []float64) float64 {
	n := len(samples)
	if n == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(samples))
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// Percentile returns the smallest sample that p percent of the samples do not exceed (the nearest
// rank), for p above 0 and up to 100. It is NaN for no samples.
func Percentile(samples []float64, p float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(p / 100 * float64(len(s))))
	return s[min(max(rank, 1), len(s))-1]
}

// Spread returns the smallest and the largest sample, or NaN for none.
func Spread(samples []float64) (least, most float64) {
	if len(samples) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(samples), slices.Max(samples)
}

// PairRatio returns the median of a/b over the runs that both have. Both values of a run come
// from the same server at about the same time, so a disturbance affects both. Runs where b is
// zero do not count. It is NaN if no run is left.
func PairRatio(a, b map[int]float64) float64 {
	var ratios []float64
	for run, x := range a {
		if y, ok := b[run]; ok && y != 0 {
			ratios = append(ratios, x/y)
		}
	}
	return Median(ratios)
}
