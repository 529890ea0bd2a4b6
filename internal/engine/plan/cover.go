package plan

import (
	"cmp"
	"slices"
)

// Box is where objects may be: in a namespace or in all (""), under a name or under any ("").
type Box struct{ Namespace, Name string }

// Cover returns disjoint boxes, in order, such that each given box lies in one of them. Boxes that
// overlap are widened to the smallest box that has both. So no object is in two boxes, and no cover
// is narrower than this one: two boxes that overlap lie in the same box of any cover. The time is
// quadratic in the number of boxes.
func Cover(boxes []Box) []Box {
	var disjoint []Box
	for _, b := range boxes {
		for {
			i := slices.IndexFunc(disjoint, b.Overlaps)
			if i < 0 {
				break
			}
			b = b.join(disjoint[i]) // it may overlap others now
			disjoint = slices.Delete(disjoint, i, i+1)
		}
		disjoint = append(disjoint, b)
	}
	slices.SortFunc(disjoint, func(a, b Box) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return disjoint
}

// Overlaps reports whether an object may be in both boxes.
func (b Box) Overlaps(other Box) bool {
	return overlap(b.Namespace, other.Namespace) && overlap(b.Name, other.Name)
}

func overlap(a, b string) bool { return a == b || a == "" || b == "" }

// In reports whether all of a box lies in another one.
func (b Box) In(wider Box) bool {
	return (wider.Namespace == "" || wider.Namespace == b.Namespace) && (wider.Name == "" || wider.Name == b.Name)
}

// join returns the smallest box that has both.
func (b Box) join(other Box) Box {
	if b.Namespace != other.Namespace {
		b.Namespace = ""
	}
	if b.Name != other.Name {
		b.Name = ""
	}
	return b
}
