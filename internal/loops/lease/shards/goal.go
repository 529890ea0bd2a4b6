package shards

import (
	"slices"
	"time"

	"github.com/kates-go/kates/internal/base/shardrange"
)

// goal is the claim that a replica goes for: it claims it when its work for the keys of others has
// ended.
type goal struct {
	claim claim     // nil: none is known yet
	since time.Time // when it became the goal
	plan  *plan     // the newest that was seen, or proposed; nil: none
	// loads are what the replicas know of the objects of their hashes, by member. Those that are
	// gone stay, until a plan does without them.
	loads map[string][]shardrange.Load
}

// aim finds out what to claim.
func (c *core) aim(now time.Time) {
	g := &c.goal
	for name, o := range c.group.peers {
		if name != c.self {
			g.plan = newer(g.plan, o.plan())
			g.note(name, o.loads)
		}
	}
	next := claim(set(c.group.all))
	if c.byRanges() {
		if p := c.propose(now); p != nil {
			g.plan = p
		}
		next = nil
		if g.plan != nil {
			next = g.plan
		}
	}
	if !same(next, g.claim) {
		g.claim, g.since = next, now
	}
}

// plan is the newest that the Lease has: what its holder claims, or proposes.
func (p *peer) plan() *plan {
	claimed, _ := p.claim.(*plan)
	return newer(claimed, p.next)
}

func (g *goal) note(member string, loads []shardrange.Load) {
	if g.loads == nil {
		g.loads = make(map[string][]shardrange.Load)
	}
	g.loads[member] = loads
}

// byRanges reports whether all members divide by ranges, of the same field. As long as one of them
// does not, all divide keys by their names.
func (c *core) byRanges() bool {
	if c.config.By == "" {
		return false
	}
	for name, o := range c.group.peers {
		if name != c.self && o.by != c.config.By {
			return false
		}
	}
	return true
}

// propose returns a new plan, if it is this replica that has to make one: the member with the
// lowest name, where the newest plan is not about the members that there are. If a member comes,
// it waits for others that may come; if one has gone, its keys do not wait. Nothing depends on
// there being one proposer.
func (c *core) propose(now time.Time) *plan {
	old, all := c.goal.plan, c.group.all
	if !c.own.joined() || all[0] != c.self {
		return nil
	}
	switch {
	case old == nil, !slices.Equal(old.members, all):
		if now.Before(c.proposes()) {
			return nil
		}
		return old.next(c.self, all, c.known())
	case now.Before(c.goal.since.Add(2*c.config.LeaseDuration)) || !c.settled():
		return nil
	}
	return old.better(c.self, c.known())
}

// proposes returns when the replica may propose a plan for members that have changed.
func (c *core) proposes() time.Time {
	old := c.goal.plan
	if old != nil && slices.ContainsFunc(old.members, func(m string) bool { return !slices.Contains(c.group.all, m) }) {
		return time.Time{} // the keys of one that is gone have no owner
	}
	return c.group.since.Add(c.config.RetryPeriod)
}

// settled reports whether all members claim the newest plan.
func (c *core) settled() bool {
	for name, o := range c.group.peers {
		if name != c.self && !same(o.claim, c.goal.claim) {
			return false
		}
	}
	return same(c.keys.claim, c.goal.claim)
}

// known returns what is known of the objects: of each hash what the member says that has it by the
// newest plan.
func (c *core) known() (all []shardrange.Load) {
	c.goal.note(c.self, c.load)
	old := c.goal.plan
	for member, loads := range c.goal.loads {
		if old != nil && !slices.Contains(old.members, member) {
			if !slices.Contains(c.group.all, member) {
				delete(c.goal.loads, member)
			}
			continue
		}
		for _, l := range loads {
			if old == nil || old.cuts.Owner(l.Hash) == member {
				all = append(all, l)
			}
		}
	}
	return shardrange.Merge(all)
}

// need returns the hashes of which the replica may have keys, now or next: its streams have to
// bring them. ok is false while it is no member: then it has no keys, and what its streams bring
// does not matter.
func (c *core) need() (need shardrange.Ranges, ok bool) {
	if !c.own.joined() || c.goal.claim == nil {
		return nil, false
	}
	for _, by := range append(slices.Clip(c.keys.written), c.goal.claim, c.keys.claim) {
		switch by := by.(type) {
		case nil:
		case *plan:
			need = need.Or(by.cuts.Ranges(c.self))
		default: // by names, which says nothing about hashes
			return shardrange.All(), true
		}
	}
	return need, true
}
