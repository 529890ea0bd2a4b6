package rounds

// Some returns the cases of a test that are tried: all of them, and under the race detector every
// fourth, from the first one on. The detector looks at how goroutines meet, which the cases of one
// test do alike, and makes each five times as slow. Without the detector each case is tried.
func Some[C any](cases []C) []C {
	var some []C
	for i := 0; i < len(cases); i += each {
		some = append(some, cases[i])
	}
	return some
}
