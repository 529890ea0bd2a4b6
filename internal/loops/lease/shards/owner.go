package shards

import (
	"hash/fnv"
	"maps"
	"slices"
)

// Key is what replicas divide: its name, and its place among all hashes, by which plans divide.
type Key struct {
	Name string
	Hash uint64
}

// claim says which member owns a key: a [set] of members, or a [plan]. It is a pure function of
// the key, and never changes. A nil claim claims nothing.
type claim interface {
	// owner returns the member that owns the key, "" if none does.
	owner(group string, k Key) string
	equal(claim) bool
}

// set is members in order, to each of which rendezvous hashing gives its keys.
type set []string

func (s set) owner(group string, k Key) string { return owner(group, k.Name, s) }

func (s set) equal(c claim) bool {
	other, ok := c.(set)
	return ok && slices.Equal(s, other)
}

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

// same reports whether two claims are alike, which may be nil.
func same(a, b claim) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.equal(b)
}

// claims are those by which a replica decides. A key must belong to the same member by all of
// them.
type claims []claim

func (cs claims) with(c claim) claims {
	if slices.ContainsFunc(cs, func(old claim) bool { return same(old, c) }) {
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
func (g *grant) has(k Key) bool {
	if g == nil {
		return false
	}
	for _, c := range g.by {
		if c == nil || c.owner(g.group, k) != g.self {
			return false
		}
	}
	for other, c := range g.others {
		if c.owner(g.group, k) == other {
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
	missing := func(c claim) bool { return !slices.ContainsFunc(h.by, func(d claim) bool { return same(c, d) }) }
	return len(g.by) == len(h.by) && !slices.ContainsFunc(g.by, missing) &&
		maps.EqualFunc(g.others, h.others, same)
}
