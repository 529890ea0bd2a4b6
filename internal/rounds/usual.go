//go:build !race

package rounds

// usual is how many steps a model test takes.
const usual = 200_000
