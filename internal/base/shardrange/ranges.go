package shardrange

import (
	"hash/fnv"
	"math"
	"slices"
	"sort"
)

// Hash is the place of a UID or a namespace among all hashes, as the server computes it.
func Hash(value string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(value))
	return h.Sum64()
}

// Range is the hashes from First to Last, both included.
type Range struct{ First, Last uint64 }

// Ranges are some of all hashes: in order, and no two of them overlap or touch. Make them by
// [NewRanges]; the zero value has no hash.
type Ranges []Range

// All is every hash.
func All() Ranges { return Ranges{{0, math.MaxUint64}} }

// NewRanges returns the hashes that any of the ranges has. Those that end before they begin have
// none.
func NewRanges(all ...Range) (merged Ranges) {
	all = slices.DeleteFunc(slices.Clone(all), func(r Range) bool { return r.Last < r.First })
	sort.Slice(all, func(i, j int) bool { return all[i].First < all[j].First })
	for _, r := range all {
		last := len(merged) - 1
		if last < 0 || merged[last].Last != math.MaxUint64 && merged[last].Last+1 < r.First {
			merged = append(merged, r)
			continue
		}
		merged[last].Last = max(merged[last].Last, r.Last)
	}
	return merged
}

// Has reports whether one of the ranges has the hash.
func (rs Ranges) Has(hash uint64) bool {
	i := sort.Search(len(rs), func(i int) bool { return rs[i].Last >= hash })
	return i < len(rs) && rs[i].First <= hash
}

// And returns the hashes that both have.
func (rs Ranges) And(others Ranges) (both Ranges) {
	for i, j := 0, 0; i < len(rs) && j < len(others); {
		a, b := rs[i], others[j]
		if first, last := max(a.First, b.First), min(a.Last, b.Last); first <= last {
			both = append(both, Range{first, last})
		}
		if a.Last <= b.Last {
			i++
		} else {
			j++
		}
	}
	return both
}

// Or returns the hashes that one of both has.
func (rs Ranges) Or(others Ranges) Ranges { return NewRanges(slices.Concat(rs, others)...) }

// Without returns the hashes that the others do not have.
func (rs Ranges) Without(others Ranges) Ranges { return rs.And(others.rest()) }

// rest is all other hashes.
func (rs Ranges) rest() (rest Ranges) {
	from, over := uint64(0), false
	for _, r := range rs {
		if r.First > from {
			rest = append(rest, Range{from, r.First - 1})
		}
		from, over = r.Last+1, r.Last == math.MaxUint64
	}
	if !over {
		rest = append(rest, Range{from, math.MaxUint64})
	}
	return rest
}

// Covers reports whether the ranges have every hash that the others have.
func (rs Ranges) Covers(others Ranges) bool { return len(others.Without(rs)) == 0 }

// Part is how much of all hashes the ranges have, between 0 and 1.
func (rs Ranges) Part() (part float64) {
	for _, r := range rs {
		part += (float64(r.Last-r.First) + 1) / (1 << 64)
	}
	return part
}
