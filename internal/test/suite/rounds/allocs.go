package rounds

import "testing"

// Allocs returns the allocations of a call of f, as [testing.AllocsPerRun] does, the least of five
// measurements. Those count what all goroutines of the process allocate, and other tests leave
// goroutines behind that are about to end: they can only add to a measurement.
func Allocs(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
