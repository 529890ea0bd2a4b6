//go:build race

package rounds

// usual is the least number of steps of a model test under the race detector.
const usual = 2_000

// each is of how many cases of a test one is tried under the race detector.
const each = 4
