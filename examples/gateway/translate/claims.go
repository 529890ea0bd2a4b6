package translate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/kates"
)

// Objects of several namespaces may claim one thing: a host, or a path of a host. These are the
// rules by which one of them has it. They hold for Ingresses, Gateways and HTTPRoutes alike.
//
//  1. The older object has it. Of two of one age, the first one by namespace and name has it.
//  2. Hosts and paths are compared as nginx reads them (normalPath).
//  3. A narrower host or a longer path is another thing: whoever names it takes its requests from
//     the wider one.
//  4. On one path the namespace whose oldest object there is older comes first, with all of its
//     rules. An exact path is the same path as the prefix with its text.
//  5. A regular expression takes no request of an older prefix of another namespace, unless rule 4
//     leaves that prefix nothing. Of two regular expressions the older one is tried first. The
//     first one takes the exact paths that it matches from younger objects of other namespaces.
//  6. A certificate for a host comes from the namespace that has the host, at whatever port.
//
// Both sides of a dispute between namespaces are told.

// place is a host at an address, whatever the port.
type place struct{ address, host string }

// Compare orders places by address and host, as nginx.Config orders servers.
func (p place) Compare(q place) int {
	return cmp.Or(strings.Compare(p.address, q.address), strings.Compare(p.host, q.host))
}

// owner is the oldest object that names a host.
type owner struct {
	object     *kates.PartialObjectMetadata // nil: it is a canary's host, which nobody serves
	namespaces []string                     // its own, and that of a Route's Gateway
}

// contenders are the fragments that have something for a host.
type contenders = derive.Group[derive.Nth[key], *fragment]

// of returns the Ingresses with rules for a host, from the oldest, and what Gateways have
// there, and then Routes, each from the oldest.
func (p place) of(all contenders) (ingresses []*ingress, attached []attachment) {
	for _, f := range all.All() {
		attached = append(attached, f.attachments[p]...)
		if f.ingress != nil {
			ingresses = append(ingresses, f.ingress)
		}
	}
	slices.SortFunc(ingresses, func(a, b *ingress) int { return older(a, b) })
	slices.SortStableFunc(attached, func(a, b attachment) int {
		switch {
		case (a.rules == nil) == (b.rules == nil):
			return older(a.object, b.object)
		case a.rules == nil:
			return -1
		}
		return 1
	})
	return ingresses, attached
}

// ownerOf finds who has a host.
func (t *translation) ownerOf(at place, all contenders) (owner, error) {
	var oldest kates.Object
	var namespaces []string
	claim := func(o kates.Object, also ...string) {
		if oldest == nil || older(o, oldest) < 0 {
			oldest, namespaces = o, append(also, o.GetNamespace())
		}
	}
	ingresses, attached := at.of(all)
	for _, in := range ingresses {
		if !in.canary {
			claim(in.Ingress)
		}
	}
	for _, a := range attached {
		claim(a.object, a.gateway.Namespace)
	}
	if oldest == nil {
		return owner{}, derive.Skip
	}
	return owner{identityOf(oldest), namespaces}, nil
}

// identityOf is what an object keeps for its life.
func identityOf(o kates.Object) *kates.PartialObjectMetadata {
	id := &kates.PartialObjectMetadata{}
	id.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	id.Namespace, id.Name, id.UID, id.CreationTimestamp = o.GetNamespace(), o.GetName(), o.GetUID(), o.GetCreationTimestamp()
	return id
}

// secures reports whether objects of these namespaces may say which certificate the host has.
func (t *translation) secures(namespaces ...string) bool {
	return slices.ContainsFunc(t.owner.namespaces, func(n string) bool { return slices.Contains(namespaces, n) })
}

// insecure reports that the host gets no certificate of an object.
func (t *translation) insecure(o kates.Object) {
	by := t.owner.object
	if by == nil {
		return
	}
	t.problem(o, "Conflict", "host %q: %s %s/%s, which is older, has it, and no certificate of namespace %s is used for it",
		cmp.Or(t.at.host, "*"), by.Kind, by.Namespace, by.Name, o.GetNamespace())
	t.problem(by, "Conflict", "host %q: a younger object of namespace %s has a certificate for it, which is not used",
		cmp.Or(t.at.host, "*"), o.GetNamespace())
}

// entry is a rule for a path, and what its precedence among the rules of that path follows from.
type entry struct {
	rule   nginx.Rule
	match  nginx.PathMatch
	object kates.Object
	index  int // of the rule within the object
}

// compare orders the rules that the objects of one namespace have for one path: exact ones first,
// then conditions on the method, then more conditions on headers, then on parameters, then the
// older object, its name, and the order within the object.
// See https://gateway-api.sigs.k8s.io/reference/spec/#httprouterule
func compare(a, b entry) int {
	count := func(e entry, of nginx.ConditionKind) (n int) {
		for _, c := range e.rule.Conditions {
			if c.Kind == of {
				n++
			}
		}
		return n
	}
	return cmp.Or(
		cmp.Compare(order[a.match], order[b.match]),
		cmp.Compare(count(b, nginx.Method), count(a, nginx.Method)),
		cmp.Compare(count(b, nginx.Header), count(a, nginx.Header)),
		cmp.Compare(count(b, nginx.Query), count(a, nginx.Query)),
		older(a.object, b.object),
		cmp.Compare(a.index, b.index),
	)
}

// arrange orders the rules for one path: those of the namespace that has it first. It returns the
// oldest object of each namespace.
func arrange(entries []entry) map[string]kates.Object {
	firsts := map[string]kates.Object{}
	for _, e := range entries {
		if first := firsts[e.object.GetNamespace()]; first == nil || older(e.object, first) < 0 {
			firsts[e.object.GetNamespace()] = e.object
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		if one, other := a.object.GetNamespace(), b.object.GetNamespace(); one != other {
			return older(firsts[one], firsts[other])
		}
		return compare(a, b)
	})
	return firsts
}

// older orders objects by their age, and then by their names.
func older(a, b kates.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time),
		strings.Compare(a.GetNamespace(), b.GetNamespace()),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

// dispute is a path that an object claims, and that another one has.
type dispute struct {
	loser, winner kates.Object
	claimed, has  string // their paths, which differ if one of them is a regular expression
}

// regex is what one namespace has of the requests that a regular expression matches.
type regex struct {
	path    string
	literal string // how all that it matches begins
	entries []entry
	first   kates.Object // the oldest one that claims it
	pattern *regexp.Regexp
	except  []string // prefixes that others have
}

// mostExcept is how many bytes the prefixes of except have together. nginx refuses a word of more
// than 4,096 bytes, and writing a byte takes four.
const mostExcept = 500

// regexes returns the regular expressions of a server in the order in which they are tried.
func (s *serverRules) regexes(lose func(dispute)) (all []*regex) {
	for p, entries := range s.paths {
		if p.match != nginx.Regex {
			continue
		}
		firsts := arrange(entries)
		namespace := entries[0].object.GetNamespace()
		one := &regex{path: p.path, first: firsts[namespace], pattern: regexp.MustCompile("^(?:" + p.path + ")")}
		one.literal, _ = regexp.MustCompile(strings.TrimPrefix(p.path, "^")).LiteralPrefix()
		for _, e := range entries {
			if e.object.GetNamespace() == namespace {
				one.entries = append(one.entries, e)
			} else {
				lose(dispute{loser: e.object, winner: one.first, claimed: p.path, has: p.path})
			}
		}
		if s.leaves(one, lose) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *regex) int {
		return cmp.Or(older(a.first, b.first), cmp.Compare(len(b.path), len(a.path)), strings.Compare(a.path, b.path))
	})
	for i, r := range all {
		s.losers(r, all[i+1:], lose)
	}
	return all
}

// losers finds the younger objects of other namespaces that a regular expression might take
// requests from.
func (s *serverRules) losers(r *regex, after []*regex, lose func(dispute)) {
	lost := func(path string, entries []entry) {
		for _, e := range entries {
			if o := e.object; o.GetNamespace() != r.first.GetNamespace() && older(r.first, o) < 0 {
				lose(dispute{loser: o, winner: r.first, claimed: path, has: r.path})
			}
		}
	}
	for _, younger := range after {
		if r.mayMatch(younger.literal) {
			lost(younger.path, younger.entries)
		}
	}
	for p, entries := range s.paths {
		if p.match == nginx.Prefix && r.mayMatch(p.path) && !slices.ContainsFunc(r.except, func(e string) bool { return selects(e, p.path) }) {
			lost(p.path, entries)
		}
	}
}

// mayMatch reports whether a regular expression might match what begins with a text.
func (r *regex) mayMatch(text string) bool {
	return strings.HasPrefix(r.literal, text) || strings.HasPrefix(text, r.literal)
}

// leaves finds the older prefixes of other namespaces whose requests a regular expression might
// take, and reports whether anything is left for it. A rule behind one without conditions has no
// requests.
func (s *serverRules) leaves(r *regex, lose func(dispute)) bool {
	for p, entries := range s.paths {
		if p.match != nginx.Prefix || !r.mayMatch(p.path) {
			continue
		}
		var by kates.Object
		arrange(entries)
		for _, e := range entries {
			if o := e.object; o.GetNamespace() != r.first.GetNamespace() && older(o, r.first) < 0 && (by == nil || older(o, by) < 0) {
				by = o
			}
			if len(e.rule.Conditions) == 0 {
				break
			}
		}
		if by != nil {
			r.except = append(r.except, p.path)
			for _, e := range r.entries {
				lose(dispute{loser: e.object, winner: by, claimed: r.path, has: p.path})
			}
		}
	}
	slices.Sort(r.except)
	r.except = slices.Compact(r.except)
	bytes := 0
	for _, prefix := range r.except {
		bytes += len(prefix)
	}
	return bytes <= mostExcept && !slices.Contains(r.except, "/")
}

// takes reports whether a regular expression takes the requests for a path.
func (r *regex) takes(path string) bool {
	return r.pattern.MatchString(path) && !slices.ContainsFunc(r.except, func(prefix string) bool { return selects(prefix, path) })
}

// reportDisputes reports disputes to both sides. Of several disputes about one path, an object is
// told the one with the oldest object, and how many there are.
func (t *translation) reportDisputes(disputes []dispute) {
	type about struct {
		object kates.Object
		path   string
		lost   bool
	}
	others := map[about][]dispute{}
	for _, d := range disputes {
		if d.loser.GetUID() == d.winner.GetUID() {
			continue
		}
		lost := about{d.loser, d.claimed, true}
		others[lost] = append(others[lost], d)
		if d.loser.GetNamespace() != d.winner.GetNamespace() {
			kept := about{d.winner, d.has, false}
			others[kept] = append(others[kept], d)
		}
	}
	for a, all := range others {
		other, text := func(d dispute) kates.Object { return d.winner }, "which is older, has "
		path := func(d dispute) string { return d.has }
		if !a.lost {
			other, text = func(d dispute) kates.Object { return d.loser }, "which is younger, claims "
			path = func(d dispute) string { return d.claimed }
		}
		slices.SortFunc(all, func(x, y dispute) int {
			return cmp.Or(older(other(x), other(y)), strings.Compare(path(x), path(y)))
		})
		all = slices.CompactFunc(all, func(x, y dispute) bool { return other(x).GetUID() == other(y).GetUID() })
		first := all[0]
		what := "it"
		if path(first) != a.path {
			what = path(first)
		}
		o := other(first)
		text = fmt.Sprintf("%s %s/%s, ", sourceOf(o).Kind, o.GetNamespace(), o.GetName()) + text + what
		if len(all) > 1 {
			text += fmt.Sprintf("; there are %d more like it", len(all)-1)
		}
		t.problem(a.object, "Conflict", "host %q, path %s: %s", cmp.Or(t.at.host, "*"), a.path, text)
	}
}
