//go:build race

package rounds

// usual is how many steps a model test takes under the race detector.
const usual = 20_000
