package shardrange

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Cut is where the hashes of a member begin. They end before the next cut.
type Cut struct {
	From   uint64
	Member string
}

// Plan gives every hash to one member: cuts in order, the first of them at 0, and no two next to
// each other of one member. So it has neither gaps nor overlaps. The zero value has no members.
type Plan []Cut

// Owner returns the member that has the hash, "" where there are no members.
func (p Plan) Owner(hash uint64) string {
	i := sort.Search(len(p), func(i int) bool { return p[i].From > hash })
	if i == 0 {
		return ""
	}
	return p[i-1].Member
}

// Ranges returns the hashes of a member.
func (p Plan) Ranges(member string) (rs Ranges) {
	for i, c := range p {
		if c.Member == member {
			rs = append(rs, Range{c.From, p.last(i)})
		}
	}
	return rs
}

// last is the last hash of a cut.
func (p Plan) last(i int) uint64 {
	if i+1 < len(p) {
		return p[i+1].From - 1
	}
	return math.MaxUint64
}

// Members returns those that have hashes, in order.
func (p Plan) Members() (all []string) {
	for _, c := range p {
		all = append(all, c.Member)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Load is how many objects have a hash: a number, or an estimate in the same unit for all.
type Load struct {
	Hash    uint64
	Objects int
}

// Loads counts hashes, in order.
func Loads(hashes []uint64) (loads []Load) {
	hashes = slices.Sorted(slices.Values(hashes))
	for _, h := range hashes {
		if last := len(loads) - 1; last >= 0 && loads[last].Hash == h {
			loads[last].Objects++
		} else {
			loads = append(loads, Load{h, 1})
		}
	}
	return loads
}

const (
	// evenly is the number of cells where nothing is known of the objects.
	evenly = 1024
	// RangesMost is how many ranges a member gets at most. A request has them all in its URL.
	RangesMost = 32
)

// Divide returns a plan for other members, or for other loads. It is the same for the same
// arguments; the order of the members does not matter. Without loads the hashes count as even,
// as those of UIDs are.
//
//  1. A member that is gone leaves all of its hashes, and one that has more than its part leaves
//     what it has too much. Nothing else moves.
//  2. Those that have less than their part get that, each as much as it lacks.
//
// A part is the number of objects divided by that of the members. Objects of one hash stay
// together, so a member may have more than its part by as many objects as one hash has, and less
// by as many as all members together leave behind for that reason. Each move may cut ranges. When
// a member would have more than [RangesMost], everything is divided anew: one range for each.
func (p Plan) Divide(members []string, loads []Load) Plan {
	members = slices.Compact(slices.Sorted(slices.Values(members)))
	if len(members) == 0 {
		return nil
	}
	d := newDivision(p, members, loads)
	d.leave()
	d.give()
	next := d.plan()
	for _, m := range members {
		if len(next.Ranges(m)) > RangesMost {
			return d.anew()
		}
	}
	return next
}

// cell is the hashes between two neighbouring bounds: those with objects, and the cuts. Its
// objects all have its first hash.
type cell struct {
	from    uint64
	objects int
	owner   string // "" for one that is to be given away
}

// division is a plan in the making.
type division struct {
	cells   []cell // in order; the first is at 0
	members []string
	has     map[string]int // objects
	total   int
}

func newDivision(p Plan, members []string, loads []Load) *division {
	if len(loads) == 0 {
		for i := range uint64(evenly) {
			loads = append(loads, Load{i * (math.MaxUint64/evenly + 1), 1})
		}
	}
	d := &division{members: members, has: make(map[string]int)}
	d.cells = append(d.cells, cell{from: 0})
	for _, l := range loads {
		d.cells = append(d.cells, cell{from: l.Hash, objects: l.Objects})
	}
	for _, c := range p {
		d.cells = append(d.cells, cell{from: c.From})
	}
	slices.SortStableFunc(d.cells, func(a, b cell) int { return cmp.Compare(a.from, b.from) })
	merged := d.cells[:0]
	for _, c := range d.cells {
		if last := len(merged) - 1; last >= 0 && merged[last].from == c.from {
			merged[last].objects += c.objects
		} else {
			merged = append(merged, c)
		}
	}
	d.cells = merged
	for i := range d.cells {
		c := &d.cells[i]
		if owner := p.Owner(c.from); slices.Contains(members, owner) {
			c.owner = owner
			d.has[owner] += c.objects
		}
		d.total += c.objects
	}
	return d
}

// part is how many objects a member may have: its part, rounded up.
func (d *division) part() int { return (d.total + len(d.members) - 1) / len(d.members) }

// run is neighbouring cells of one owner: those from first to before end.
type run struct{ first, end, objects int }

func (d *division) runs(owner string) (all []run) {
	for i := 0; i < len(d.cells); {
		end, objects := i, 0
		for ; end < len(d.cells) && d.cells[end].owner == d.cells[i].owner; end++ {
			objects += d.cells[end].objects
		}
		if d.cells[i].owner == owner {
			all = append(all, run{i, end, objects})
		}
		i = end
	}
	return all
}

// leave takes from each member what it has too much: whole ranges first, the smallest before
// others, so that it has fewer; then the end of a range.
func (d *division) leave() {
	part := d.part()
	for _, m := range d.members {
		runs := d.runs(m)
		slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.objects, b.objects) })
		for _, r := range runs {
			switch {
			case d.has[m] <= part:
			case d.has[m]-r.objects >= part:
				d.take(m, r.first, r.end)
			default:
				end := r.end
				for first := r.end - 1; first > r.first && d.has[m]-d.cells[first].objects >= part; first-- {
					d.take(m, first, end)
					end = first
				}
			}
		}
	}
}

// take makes cells of a member nobody's.
func (d *division) take(m string, first, end int) {
	for i := first; i < end; i++ {
		d.has[m] -= d.cells[i].objects
		d.cells[i].owner = ""
	}
}

// give gives away what is nobody's, in order: each member that lacks objects gets what it lacks,
// and as much of what there is too little. A member begins where the one before has its share.
func (d *division) give() {
	free, lacking := 0, 0
	for _, r := range d.runs("") {
		free += r.objects
	}
	part := d.part()
	var takers []string
	for _, m := range d.members {
		if d.has[m] < part {
			takers, lacking = append(takers, m), lacking+part-d.has[m]
		}
	}
	if takers == nil { // cells without objects may be left
		takers, lacking = d.members[:1], 1
	}
	taker, given := 0, 0
	upTo := float64(part - d.has[takers[0]]) // of what is lacking
	for i := range d.cells {
		c := &d.cells[i]
		if c.owner != "" {
			continue
		}
		middle := (float64(given) + float64(c.objects)/2) * float64(lacking) / float64(max(free, 1))
		for taker+1 < len(takers) && middle >= upTo {
			taker++
			upTo += float64(part - d.has[takers[taker]])
		}
		c.owner = takers[taker]
		given += c.objects
	}
}

// anew gives each member one range: in the order in which most of what they have lies, so that
// they keep some of it.
func (d *division) anew() Plan {
	order := slices.Clone(d.members)
	lies := make(map[string]float64)
	for _, m := range d.members {
		objects, sum := 0.0, 0.0
		for i, c := range d.cells {
			if c.owner == m {
				objects, sum = objects+float64(c.objects), sum+float64(i)*float64(c.objects)
			}
		}
		lies[m] = sum / max(objects, 1)
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(lies[a], lies[b]) })
	given := 0
	for i := range d.cells {
		c := &d.cells[i]
		middle := (float64(given) + float64(c.objects)/2) * float64(len(order)) / float64(max(d.total, 1))
		c.owner = order[min(int(middle), len(order)-1)]
		given += c.objects
	}
	return d.plan()
}

func (d *division) plan() (p Plan) {
	for _, c := range d.cells {
		if last := len(p) - 1; last < 0 || p[last].Member != c.owner {
			p = append(p, Cut{c.from, c.owner})
		}
	}
	return p
}

// Merge sums loads of the same hash, and puts them in order.
func Merge(loads []Load) (merged []Load) {
	loads = slices.Clone(loads)
	slices.SortFunc(loads, func(a, b Load) int { return cmp.Compare(a.Hash, b.Hash) })
	for _, l := range loads {
		if last := len(merged) - 1; last >= 0 && merged[last].Hash == l.Hash {
			merged[last].Objects += l.Objects
		} else {
			merged = append(merged, l)
		}
	}
	return merged
}

// Digest returns loads that stand for others, no more than most of them, each at the hash where it
// begins: what a plan can be cut by. The order of the loads is that of their hashes.
func Digest(loads []Load, most int) (digest []Load) {
	total := 0
	for _, l := range loads {
		total += l.Objects
	}
	if len(loads) <= most {
		return loads
	}
	sum := 0
	for _, l := range loads {
		if place := sum * most / max(total, 1); place >= len(digest) {
			digest = append(digest, Load{Hash: l.Hash})
		}
		digest[len(digest)-1].Objects += l.Objects
		sum += l.Objects
	}
	return digest
}
