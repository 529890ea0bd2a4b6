package shards

import "slices"

// ownership says which keys the replica owns. The zero value has none.
type ownership struct {
	claim     claim    // the one written last, as far as is known
	proposed  *plan    // the plan that the Lease proposes
	claimedRV string   // the Lease's version since when
	written   claims   // the claim that the watch showed last, and those written after it
	shown     bool     // the watch has shown a claim
	grants    []*grant // one per state since the last catch-up; the last is current
	caught    bool     // the watches are as new as the first grant
	gains     uint64   // how often the replica may have got keys
	lapses    uint64   // how often the Lease was renewed after it had run out, and nobody had seen it
}

// has reports whether the replica owns the key by every grant.
func (o *ownership) has(key Key) bool {
	return o.caught && !slices.ContainsFunc(o.grants, func(g *grant) bool { return !g.has(key) })
}

// add makes a grant the current one, if it differs.
func (o *ownership) add(g *grant) {
	if !g.same(o.current()) {
		o.grants = append(o.grants, g)
	}
}

// current is the latest grant, nil if there is none.
func (o *ownership) current() *grant {
	if len(o.grants) == 0 {
		return nil
	}
	return o.grants[len(o.grants)-1]
}

// standing decides which keys the replica owns.
type standing struct {
	first, last *grant // those between change with them
	caught      bool
	lapses      uint64 // keys had no owner for a while
}

func (o *ownership) standing() standing {
	if len(o.grants) == 0 {
		return standing{}
	}
	return standing{o.grants[0], o.current(), o.caught, o.lapses}
}

// behind reports whether the watches have to catch up with the last grant.
func (s standing) behind() bool { return s.last != nil && (!s.caught || s.first != s.last) }

// caughtUp notes that all watches are as new as the server was when the grant was current.
func (o *ownership) caughtUp(with *grant) {
	if i := slices.Index(o.grants, with); i >= 0 {
		if i > 0 || !o.caught {
			o.gains++
		}
		o.grants, o.caught = o.grants[i:], true
	}
}
