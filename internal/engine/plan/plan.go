package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Target says which objects of the kind somebody follows: the one of a name, those with some
// labels, or all, in a namespace or (if that is empty) in all namespaces. A kind without
// namespaces has only targets without.
type Target struct {
	Namespace, Name string
	// Labels is a selector; "" selects all. A target has a name or labels, or neither.
	Labels string
	// Metadata: the objects' metadata is enough.
	Metadata bool
}

// Part is what one list and watch brings: everything, or what is in a namespace, or has a name, or
// some labels. The zero value is the whole kind.
type Part struct{ Namespace, Name, Labels string }

// Level is how wide the parts of a plan are.
type Level uint8

// The levels, from narrow to wide. The package comment has the rule.
const (
	None Level = iota // nothing is watched
	Selections
	Namespaces
	Kind
)

// String names the level for status.
func (l Level) String() string {
	return [...]string{"nothing", "selections", "namespaces", "kind"}[l]
}

// The most parts of a plan of a level. To return to it from a wider one there may be half as many.
const (
	MostSelections = 8
	MostNamespaces = 4
)

// Plan is what to watch.
type Plan struct {
	Level Level
	// Parts are in order, and none lies in another.
	Parts []Part
	// Whole: the objects are whole. Else they are metadata alone.
	Whole bool
}

// Equal reports whether two plans watch the same.
func (p Plan) Equal(q Plan) bool {
	return p.Whole == q.Whole && p.Level == q.Level && slices.Equal(p.Parts, q.Parts)
}

// Covers reports whether a target's objects are among those of the plan.
func (p Plan) Covers(t Target) bool {
	return (p.Whole || t.Metadata) && slices.ContainsFunc(p.Parts, t.part(Selections).in)
}

// has reports whether the plan has a part, in a form.
func (p Plan) has(part Part, whole bool) bool {
	return p.Whole == whole && slices.Contains(p.Parts, part)
}

// part returns the target's part at a level.
func (t Target) part(l Level) Part {
	switch l {
	case Kind:
		return Part{}
	case Namespaces:
		return Part{Namespace: t.Namespace}
	default:
		return Part{t.Namespace, t.Name, t.Labels}
	}
}

// in reports whether all that is in a part is in another one, too.
func (p Part) in(wider Part) bool {
	return p == wider || (wider.Namespace == "" || wider.Namespace == p.Namespace) &&
		(wider.Name == "" || wider.Name == p.Name) && (wider.Labels == "" || wider.Labels == p.Labels)
}

// String is the part in words.
func (p Part) String() string {
	words := []string{"everything"}
	if p.Name != "" {
		words = []string{p.Name}
	} else if p.Labels != "" {
		words = []string{p.Labels}
	}
	if p.Namespace != "" {
		words = append(words, "in", p.Namespace)
	}
	return strings.Join(words, " ")
}

// Choose returns the plan for some targets, by the rule in the package comment, given the plan
// that is shown now, and the parts that the server refuses. A plan without parts covers nothing:
// there are no targets, or all are refused.
func Choose(now Plan, targets []Target, refused map[Part]bool) Plan {
	p := Plan{Whole: slices.ContainsFunc(targets, func(t Target) bool { return !t.Metadata })}
	if len(targets) == 0 {
		return Plan{}
	}
	p.Level = level(now.Level, targets)
	add := func(part Part) (added bool) {
		if refused[part] && !now.has(part, p.Whole) || slices.ContainsFunc(p.Parts, part.tears) {
			return false
		}
		p.Parts = append(p.Parts, part)
		return true
	}
	targets = slices.SortedFunc(slices.Values(targets), Target.compare)
	for _, part := range now.Parts { // what is shown goes before what could stand in its way
		if slices.ContainsFunc(targets, func(t Target) bool { return t.at(p.Level, part) }) && add(part) {
			continue
		}
		for _, t := range targets {
			if mine := t.part(Selections); mine.in(part) {
				add(mine)
			}
		}
	}
	for _, t := range targets {
		for l := p.Level; l > None && !add(t.part(l)); l-- {
		}
	}
	if p.Parts = outermost(p.Parts); p.Parts == nil {
		return Plan{}
	}
	return p
}

// compare orders targets, so that each time the same ones are left out: those of all namespaces,
// which stand in the way of most others.
func (t Target) compare(o Target) int {
	if (t.Namespace == "") != (o.Namespace == "") {
		return cmp.Compare(o.Namespace, t.Namespace)
	}
	return cmp.Or(cmp.Compare(t.Namespace, o.Namespace), cmp.Compare(t.Name, o.Name), cmp.Compare(t.Labels, o.Labels))
}

// at reports whether a part is the target's at a level, or at a narrower one.
func (t Target) at(l Level, part Part) bool {
	for ; l > None; l-- {
		if t.part(l) == part {
			return true
		}
	}
	return false
}

// box is where the part's objects may be.
func (p Part) box() Box { return Box{p.Namespace, p.Name} }

// tears reports whether an object may be in both parts, and neither lies in the other. They cannot
// both be watched, as an object is in one stream of a query.
func (p Part) tears(other Part) bool {
	return p.box().Overlaps(other.box()) && !p.in(other) && !other.in(p)
}

// level returns the level that fits all targets.
func level(now Level, targets []Target) Level {
	most := func(l Level, limit int) int {
		if now > l {
			return limit / 2
		}
		return limit
	}
	selected, placed := make([]Part, len(targets)), make([]Part, len(targets))
	narrow, spaced := true, true
	for i, t := range targets {
		selected[i], placed[i] = t.part(Selections), t.part(Namespaces)
		narrow = narrow && (t.Name != "" || t.Labels != "")
		spaced = spaced && t.Namespace != ""
	}
	switch {
	case narrow && apart(selected, most(Selections, MostSelections)):
		return Selections
	case spaced && len(outermost(placed)) <= most(Namespaces, MostNamespaces):
		return Namespaces
	default:
		return Kind
	}
}

// apart reports whether no object may be in two parts, of which there are not too many.
func apart(parts []Part, most int) bool {
	parts = outermost(parts)
	boxes := make([]Box, len(parts))
	for i, p := range parts {
		boxes[i] = p.box()
	}
	return len(parts) <= most && len(Cover(boxes)) == len(parts)
}

// outermost returns the parts that lie in no other, each once, in order.
func outermost(all []Part) (outer []Part) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Labels, b.Labels))
	})
	all = slices.Compact(all)
	is := make(map[Part]bool, len(all))
	for _, p := range all {
		is[p] = true
	}
	for _, p := range all {
		inner := false
		for _, wider := range p.wider() {
			inner = inner || wider != p && is[wider]
		}
		if !inner {
			outer = append(outer, p)
		}
	}
	return outer
}

// wider returns the parts in which this one may lie.
func (p Part) wider() []Part {
	return []Part{{}, {Namespace: p.Namespace}, {Name: p.Name, Labels: p.Labels}}
}
