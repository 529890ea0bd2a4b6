package shards

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kates-go/kates/internal/base/shardrange"
)

// plan gives each hash to a member. It never changes. Plans are in one order for all replicas: by
// their numbers, then by who has proposed them, then by their texts. Each replica goes by the
// newest that it has seen.
type plan struct {
	number   uint64
	proposer string
	members  []string // in order, also those without hashes
	cuts     shardrange.Plan
}

func (p *plan) owner(_ string, k Key) string { return p.cuts.Owner(k.Hash) }

func (p *plan) equal(c claim) bool {
	other, ok := c.(*plan)
	return ok && (p == other || p.compare(other) == 0)
}

// compare is negative if the other plan is newer.
func (p *plan) compare(other *plan) int {
	return cmp.Or(cmp.Compare(p.number, other.number), strings.Compare(p.proposer, other.proposer), strings.Compare(p.String(), other.String()))
}

// newer returns the newer of two plans, which may be nil.
func newer(a, b *plan) *plan {
	if a == nil || b != nil && a.compare(b) < 0 {
		return b
	}
	return a
}

// String is the plan as Leases have it. Cuts name members by their places in the list:
//
//	7 0123456789 0123456789,abcdef0123 0:0,8000000000000000:1
func (p *plan) String() string {
	cuts := make([]string, len(p.cuts))
	for i, c := range p.cuts {
		cuts[i] = fmt.Sprintf("%x:%d", c.From, slices.Index(p.members, c.Member))
	}
	return fmt.Sprintf("%d %s %s %s", p.number, p.proposer, strings.Join(p.members, ","), strings.Join(cuts, ","))
}

// mostNumber is more than a plan has ever had as its number. The number after a larger one might
// not exist, and then no plan could follow.
const mostNumber = 1 << 62

// parsePlan reads what String writes, nil if the text is no plan.
func parsePlan(text string) *plan {
	parts := strings.Split(text, " ")
	if len(parts) != 4 {
		return nil
	}
	number, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil || number > mostNumber {
		return nil
	}
	p := &plan{number: number, proposer: parts[1], members: strings.Split(parts[2], ",")}
	if p.proposer == "" || !slices.IsSorted(p.members) || len(slices.Compact(slices.Clone(p.members))) < len(p.members) || p.members[0] == "" {
		return nil
	}
	for i, cut := range strings.Split(parts[3], ",") {
		from, place, _ := strings.Cut(cut, ":")
		hash, err := strconv.ParseUint(from, 16, 64)
		at, wrong := strconv.Atoi(place)
		if err != nil || wrong != nil || at < 0 || at >= len(p.members) {
			return nil
		}
		if i == 0 && hash != 0 || i > 0 && hash <= p.cuts[i-1].From {
			return nil
		}
		p.cuts = append(p.cuts, shardrange.Cut{From: hash, Member: p.members[at]})
	}
	if p.String() != text { // two replicas would not agree that it is one plan
		return nil
	}
	return p
}

// uneven is how much more than its part of the objects a member has before a plan is made anew: a
// quarter of the part.
const uneven = 4

// next returns the plan of a proposer that follows. A nil plan is followed by the first one.
func (p *plan) next(proposer string, members []string, loads []shardrange.Load) *plan {
	next := &plan{number: 1, proposer: proposer, members: members}
	if p == nil {
		next.cuts = shardrange.Plan(nil).Divide(members, loads)
		return next
	}
	next.number = p.number + 1
	next.cuts = p.cuts.Divide(members, loads)
	return next
}

// most returns the objects of the member that has most, and those of the hash that has most.
func (p *plan) most(loads []shardrange.Load) (ofMember, ofHash, total int) {
	has := make(map[string]int)
	for _, l := range loads {
		m := p.cuts.Owner(l.Hash)
		has[m] += l.Objects
		ofMember, ofHash, total = max(ofMember, has[m]), max(ofHash, l.Objects), total+l.Objects
	}
	return ofMember, ofHash, total
}

// better returns a plan for the same members that divides the objects more evenly, if that is
// worth the moves; else nil.
func (p *plan) better(proposer string, loads []shardrange.Load) *plan {
	most, heaviest, total := p.most(loads)
	part := (total + len(p.members) - 1) / len(p.members)
	if most <= part+part/uneven+heaviest {
		return nil
	}
	next := p.next(proposer, p.members, loads)
	if now, _, _ := next.most(loads); now >= most {
		return nil
	}
	return next
}
