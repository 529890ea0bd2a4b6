//go:build !race

package rounds

// usual is the least number of steps of a model test.
const usual = 5_000

// each is of how many cases of a test one is tried.
const each = 1
