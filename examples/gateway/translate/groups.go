package translate

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// groups are the EndpointSlices of each Service. They follow snapshots: one shares with the next
// the objects that have not changed, so only the groups of the others are made again. Groups are
// not changed in place. The zero value has none.
type groups struct {
	all []*discoveryv1.EndpointSlice // those that are grouped
	of  map[types.NamespacedName][]*discoveryv1.EndpointSlice
}

// follow takes the EndpointSlices of the next snapshot.
func (g *groups) follow(now []*discoveryv1.EndpointSlice) {
	if g.of == nil {
		g.of = map[types.NamespacedName][]*discoveryv1.EndpointSlice{}
	}
	for before, after := range changes(g.all, now) {
		if before != nil {
			g.change(serviceOf(before), func(group []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
				return slices.DeleteFunc(slices.Clone(group), func(s *discoveryv1.EndpointSlice) bool { return s == before })
			})
		}
		if after != nil {
			g.change(serviceOf(after), func(group []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
				return append(slices.Clip(group), after)
			})
		}
	}
	g.all = now
}

func (g *groups) change(service types.NamespacedName, f func([]*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice) {
	if group := f(g.of[service]); len(group) > 0 {
		g.of[service] = group
	} else {
		delete(g.of, service)
	}
}

// serviceOf names the Service of an EndpointSlice.
func serviceOf(s *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
}

// changes yields what differs between the objects of one kind in two snapshots, each of them
// ordered by namespace and name: what an object was, and what it is. nil: it was not there, or is
// not any more.
func changes[T any, P interface {
	*T
	kates.Object
}](before, now []P) iter.Seq2[P, P] {
	return func(yield func(P, P) bool) {
		for len(before) > 0 || len(now) > 0 {
			var was, is P
			switch order := compareFirst(before, now); {
			case order == 0:
				was, is, before, now = before[0], now[0], before[1:], now[1:]
			case order < 0:
				was, before = before[0], before[1:]
			default:
				is, now = now[0], now[1:]
			}
			if was != is && !yield(was, is) {
				return
			}
		}
	}
}

// compareFirst compares the names of the first objects. No object is after all others.
func compareFirst[T any, P interface {
	*T
	kates.Object
}](a, b []P) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	case a[0] == b[0]: // nearly always
		return 0
	}
	return cmp.Or(strings.Compare(a[0].GetNamespace(), b[0].GetNamespace()), strings.Compare(a[0].GetName(), b[0].GetName()))
}
