// Package rights has the rights of a program, in the words of RBAC: what it may do to which
// resource, and where. A [Set] takes rights, and makes roles of them. The package is pure: it knows
// neither clients nor queries.
//
// See https://kubernetes.io/docs/reference/access-authn-authz/rbac/
package rights

import (
	"cmp"
	"maps"
	"slices"
)

// Right allows one verb on objects of one resource.
type Right struct {
	Verb     string
	Group    string
	Resource string // with the subresource: pods/log
	// Namespace of the objects. Empty: all namespaces, or none for a resource that has none.
	Namespace string
	// Name of the one object. Empty: all of them.
	Name string
}

// covers reports whether a right allows all that another one does.
func (r Right) covers(other Right) bool {
	same := r.Verb == other.Verb && r.Group == other.Group && r.Resource == other.Resource
	return same && (r.Namespace == "" || r.Namespace == other.Namespace) && (r.Name == "" || r.Name == other.Name)
}

func compare(a, b Right) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb))
}

// Set is a set of rights. The zero value is empty. It is for one goroutine.
type Set struct {
	all    map[Right]bool
	fenced map[Right]bool // what writes under a lease need besides
	leased bool
}

// Add adds a right for each verb.
func (s *Set) Add(r Right, verbs ...string) {
	if s.all == nil {
		s.all = make(map[Right]bool)
	}
	for _, r.Verb = range verbs {
		s.all[r] = true
	}
}

// Lease says that the program writes under a lease.
func (s *Set) Lease() { s.leased = true }

// Fence adds a right that the program needs only if it writes under a lease.
func (s *Set) Fence(r Right) {
	if s.fenced == nil {
		s.fenced = make(map[Right]bool)
	}
	s.fenced[r] = true
}

// Rights returns the rights, without those that another one covers, in order.
func (s *Set) Rights() []Right {
	all := maps.Clone(s.all)
	if s.leased {
		for r := range s.fenced {
			all[r] = true
		}
	}
	return slices.SortedFunc(func(yield func(Right) bool) {
		for r := range all {
			if !coveredByAnother(r, all) && !yield(r) {
				return
			}
		}
	}, compare)
}

// coveredByAnother asks for the three rights that can cover another one.
func coveredByAnother(r Right, all map[Right]bool) bool {
	for _, wider := range []Right{
		{r.Verb, r.Group, r.Resource, "", r.Name},
		{r.Verb, r.Group, r.Resource, r.Namespace, ""},
		{r.Verb, r.Group, r.Resource, "", ""},
	} {
		if wider != r && all[wider] && wider.covers(r) {
			return true
		}
	}
	return false
}
