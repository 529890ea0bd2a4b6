package shards

import (
	"hash/fnv"
	"maps"
	"slices"
)

// owner returns the member that owns the key, "" if there are no members.
func owner(group, key string, members []string) (best string) {
	var most uint64
	for _, m := range members {
		if w := weight(group, key, m); best == "" || w > most || w == most && m < best {
			best, most = m, w
		}
	}
	return best
}

// weight is FNV-1a, which alone spreads keys badly that differ in their last letters, with
// MurmurHash3's finalizer. It is the same in all versions of this package.
func weight(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// claim is a set of members, in order. With nil the replica claims nothing.
type claim []string

func (c claim) equal(d claim) bool { return (c == nil) == (d == nil) && slices.Equal(c, d) }

// claims are sets of members. A key must belong to the same member by all of them.
type claims []claim

func (cs claims) with(c claim) claims {
	if slices.ContainsFunc(cs, c.equal) {
		return cs
	}
	return append(slices.Clip(cs), c)
}

// grant says which keys a member may have, as of some moment.
type grant struct {
	group, self string
	by          claims
	// others claim something else.
	others map[string]claim
}

// has reports whether the member has the key. A nil grant has no key.
func (g *grant) has(key string) bool {
	if g == nil {
		return false
	}
	for _, c := range g.by {
		if owner(g.group, key, c) != g.self {
			return false
		}
	}
	for other, c := range g.others {
		if owner(g.group, key, c) == other {
			return false
		}
	}
	return true
}

// same reports whether two grants have the same keys, whatever these are.
func (g *grant) same(h *grant) bool {
	if g == nil || h == nil {
		return g == h
	}
	missing := func(c claim) bool { return !slices.ContainsFunc(h.by, c.equal) }
	return len(g.by) == len(h.by) && !slices.ContainsFunc(g.by, missing) &&
		maps.EqualFunc(g.others, h.others, claim.equal)
}
