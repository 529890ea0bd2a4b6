package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/kates"
)

// A request may be tried with each regular expression of its host. Each one costs what package
// nginx allows it, while other requests wait, so their number is bounded, too.
const (
	regexesOfObject = 32
	regexesOfHost   = 64 // of one namespace
)

var errRegexes = fmt.Errorf("an object has at most %d regular expressions", regexesOfObject)

// regexes counts those of a rule with these conditions.
func regexes(match nginx.PathMatch, conditions []nginx.Condition) (n int) {
	if match == nginx.Regex {
		n++
	}
	for _, c := range conditions {
		if c.Regex {
			n++
		}
	}
	return n
}

// fewRegexes returns the paths of an Ingress up to the bound.
func (t *translation) fewRegexes(in *ingress, paths []ingressPath) []ingressPath {
	n := 0
	return slices.DeleteFunc(paths, func(p ingressPath) bool {
		if p.match != nginx.Regex {
			return false
		}
		if n++; n > regexesOfObject {
			t.problem(in.Ingress, "TooManyRegexes", "host %q, path %q: %v", cmp.Or(p.host, "*"), p.path, errRegexes)
		}
		return n > regexesOfObject
	})
}

// fewRegexes leaves out the matches of a rule with regular expressions beyond the bound of its
// Route.
func (r *routeRules) fewRegexes(one *routeRule) (err error) {
	one.matches = slices.DeleteFunc(one.matches, func(m routeMatch) bool {
		n := regexes(m.match, m.conditions)
		if n > 0 && r.regexes+n > regexesOfObject {
			err = errRegexes
			return true
		}
		r.regexes += n
		return false
	})
	return err
}

// boundRegexes leaves out rules with regular expressions if their namespace has too many at a host:
// those of the youngest objects. Namespaces do not share the bound, so none takes from another.
func (t *translation) boundRegexes() {
	for _, s := range t.table {
		n := map[types.UID]int{}
		var objects []kates.Object
		for p, entries := range s.paths {
			for _, e := range entries {
				if count := regexes(p.match, e.rule.Conditions); count > 0 {
					if n[e.object.GetUID()] == 0 {
						objects = append(objects, e.object)
					}
					n[e.object.GetUID()] += count
				}
			}
		}
		slices.SortFunc(objects, func(a, b kates.Object) int {
			return cmp.Or(older(a, b), strings.Compare(string(a.GetUID()), string(b.GetUID())))
		})
		total, out := map[string]int{}, map[types.UID]bool{}
		for _, o := range objects {
			if sum := total[o.GetNamespace()] + n[o.GetUID()]; sum <= regexesOfHost {
				total[o.GetNamespace()] = sum
				continue
			}
			out[o.GetUID()] = true
			t.problem(o, "TooManyRegexes", "host %q has at most %d regular expressions of a namespace, and older objects have them: "+
				"the rules with those of this object are left out", cmp.Or(t.at.host, "*"), regexesOfHost)
		}
		s.leaveOut(func(p path, e entry) bool {
			return out[e.object.GetUID()] && regexes(p.match, e.rule.Conditions) > 0
		})
	}
}

// leaveOut leaves out entries, and paths that have no others.
func (s *serverRules) leaveOut(is func(path, entry) bool) {
	for p, entries := range s.paths {
		had := len(entries)
		entries = slices.DeleteFunc(entries, func(e entry) bool { return is(p, e) })
		if s.paths[p] = entries; had > 0 && len(entries) == 0 {
			delete(s.paths, p)
		}
	}
}
