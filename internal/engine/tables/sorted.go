package tables

import (
	"slices"
)

// seek finds a key in a sorted sequence, starting at index from. All elements before that index
// must be less than the key. It returns the key's index, or the index at which to insert it. The
// steps double, so that a batch in key order costs O(log n) for each of few changes and O(1) for
// each of many.
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

// splice makes the edits in place, as far as the capacity goes. Each element moves at most twice,
// however many edits there are.
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

// openGaps adds the inserted elements. It works from the back, so that it overwrites nothing that
// it still has to move. The gaps of deleted elements are closed already; later elements have
// moved forward by that.
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

// edit is a change at one position of a sorted sequence: a replacement, an insertion before the
// position, or a deletion.
type edit struct {
	at       int  // an index into the sequence before any edit
	occupied bool // the sequence has an element of the edit's key at that index
	row      *Row // nil: the sequence has no element of the key after the edit
}

func (e edit) deletes() bool { return e.occupied && e.row == nil }

func (e edit) inserts() bool { return !e.occupied && e.row != nil }
