package snapshot

import "slices"

// seek finds a key in a sorted sequence from an index on, where everything before that index is known to be less. It
// returns the key's index, or where it would be inserted. The steps double from the start, so that a batch in key order
// costs O(log n) for each of few changes, and O(1) for each of many.
func seek[S any](s []S, from int, k Key, compare func(S, Key) int) (at int, found bool) {
	low, step := from, 1
	for low+step <= len(s) && compare(s[low+step-1], k) < 0 {
		low += step
		step *= 2
	}
	at, found = slices.BinarySearchFunc(s[low:min(low+step, len(s))], k, compare)
	return low + at, found
}

// count returns how many of the edits insert, and how many delete.
func count(edits []edit) (inserted, deleted int) {
	for _, e := range edits {
		switch {
		case e.inserts():
			inserted++
		case e.deletes():
			deleted++
		}
	}
	return inserted, deleted
}

// splice makes the edits in place, as far as the capacity goes: each element moves at most twice, whatever their number.
func splice[S any](s []S, edits []edit, of func(*Row) S) []S {
	for _, e := range edits {
		if e.occupied && e.row != nil {
			s[e.at] = of(e.row)
		}
	}
	inserted, deleted := count(edits)
	if deleted > 0 {
		s = closeGaps(s, edits)
	}
	if inserted > 0 {
		s = openGaps(s, edits, inserted, deleted, of)
	}
	const slack = 64
	if cap(s) > 4*len(s)+slack {
		s = slices.Clone(s)
	}
	return s
}

// closeGaps removes the elements that the edits delete.
func closeGaps[S any](s []S, edits []edit) []S {
	from, to := 0, 0
	for _, e := range edits {
		if e.deletes() {
			to += copy(s[to:], s[from:e.at])
			from = e.at + 1
		}
	}
	to += copy(s[to:], s[from:])
	clear(s[to:])
	return s[:to]
}

// openGaps adds the elements that the edits insert, from the back, so that nothing is overwritten that is still to be
// moved. The gaps of the deleted elements are closed already: they shift what lies behind them.
func openGaps[S any](s []S, edits []edit, inserted, deleted int, of func(*Row) S) []S {
	until := len(s)
	s = slices.Grow(s, inserted)[:until+inserted]
	for _, e := range slices.Backward(edits) {
		switch {
		case e.deletes():
			deleted--
		case e.inserts():
			at := e.at - deleted
			copy(s[at+inserted:], s[at:until])
			inserted--
			s[at+inserted] = of(e.row)
			until = at
		}
	}
	return s
}
