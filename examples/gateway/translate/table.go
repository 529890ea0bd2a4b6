package translate

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/kates"
)

// listener is where a server listens.
type listener struct {
	address string
	port    int
	tls     bool
	host    string
}

// table collects the rules of all objects, by server and path. Their order does not matter.
type table map[listener]*serverRules

type serverRules struct {
	certificate string
	secured     nginx.Object // the object that the certificate comes from
	ofIngress   bool         // an Ingress has it, and it has no Listener
	listener    string       // see nginx.Server
	first       kates.Object // the oldest one that it is for
	paths       map[path][]entry
}

type path struct {
	match nginx.PathMatch
	path  string
}

// server returns the rules of a server, which may have none yet, for an object that it is for.
func (t table) server(l listener, o kates.Object) *serverRules {
	s := t[l]
	if s == nil {
		s = &serverRules{paths: map[path][]entry{}, first: o}
		t[l] = s
	}
	if older(o, s.first) < 0 {
		s.first = o
	}
	return s
}

// add adds a rule for a path.
func (s *serverRules) add(to path, e entry) {
	e.rule.Source, e.match = sourceOf(e.object), to.match
	if to.match == nginx.Prefix {
		e.rule.MatchedPrefix = to.path
	}
	s.paths[to] = append(s.paths[to], e)
}

// sourceOf names an object.
func sourceOf(o kates.Object) nginx.Object {
	return nginx.Object{
		Kind: o.GetObjectKind().GroupVersionKind().Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: o.GetUID(), Version: o.GetResourceVersion(),
	}
}

func (s *serverRules) locations(lose func(dispute)) []nginx.Location {
	var all []nginx.Location
	regexes := s.regexes(lose)
	for p, entries := range s.paths {
		switch p.match {
		case nginx.Exact:
			entries = s.exact(p.path, entries, regexes, lose)
		case nginx.Regex:
			continue
		}
		entries = reachable(p, entries, lose)
		if slices.ContainsFunc(entries, func(e entry) bool { return e.match == p.match }) {
			all = append(all, nginx.Location{Path: p.path, Match: p.match, Rules: ruleList(entries)})
		}
	}
	slices.SortFunc(all, byPath)
	settle(all)
	for _, r := range regexes {
		all = append(all, nginx.Location{Path: r.path, Match: nginx.Regex, Except: r.except, Rules: ruleList(reachable(path{nginx.Regex, r.path}, r.entries, lose))})
	}
	return all
}

// exact returns the rules for an exact path: its own, and those of the prefix with the same text,
// which has that path, too. An exact path has none if the first regular expression that takes its
// requests is of another namespace, and older.
func (s *serverRules) exact(to string, entries []entry, regexes []*regex, lose func(dispute)) []entry {
	entries = append(slices.Clip(entries), s.paths[path{nginx.Prefix, prefixText(to)}]...)
	firsts := arrange(entries)
	at := slices.IndexFunc(regexes, func(r *regex) bool { return r.takes(to) })
	if at < 0 {
		return entries
	}
	by := regexes[at]
	return slices.DeleteFunc(entries, func(e entry) bool {
		first := firsts[e.object.GetNamespace()]
		if e.match != nginx.Exact || by.first.GetNamespace() == first.GetNamespace() || older(by.first, first) > 0 {
			return false
		}
		lose(dispute{loser: e.object, winner: by.first, claimed: to, has: by.path})
		return true
	})
}

// prefixText is the text of a path as that of a prefix.
func prefixText(path string) string {
	if path == "/" {
		return path
	}
	return strings.TrimSuffix(path, "/")
}

// reachable orders the rules for a path, and returns those up to the first one without conditions.
func reachable(p path, entries []entry, lose func(dispute)) []entry {
	firsts := arrange(entries)
	for i, e := range entries {
		if len(e.rule.Conditions) > 0 {
			continue
		}
		for _, other := range entries[i+1:] {
			if other.match == p.match {
				lose(dispute{loser: other.object, winner: winner(e, other, firsts), claimed: p.path, has: p.path})
			}
		}
		return entries[:i+1]
	}
	return entries
}

func ruleList(entries []entry) (rules []nginx.Rule) {
	for _, e := range entries {
		rules = append(rules, e.rule)
	}
	return rules
}

// winner is the object for whose sake a rule has its path: the oldest one of its namespace there.
func winner(e, loser entry, firsts map[string]kates.Object) kates.Object {
	if e.object.GetNamespace() == loser.object.GetNamespace() {
		return e.object
	}
	return firsts[e.object.GetNamespace()]
}

var order = map[nginx.PathMatch]int{nginx.Exact: 0, nginx.Prefix: 1, nginx.Regex: 2}

// byPath is the order of nginx.Server.Locations.
func byPath(a, b nginx.Location) int {
	return cmp.Or(cmp.Compare(order[a.Match], order[b.Match]), cmp.Compare(len(b.Path), len(a.Path)), strings.Compare(a.Path, b.Path))
}

// settle gives each location the rules of the shorter prefixes that select its path, too: a
// request that meets no conditions of the longest path goes to the next one. An exact path has those
// of the prefix with its text already.
func settle(all []nginx.Location) {
	for i := range all {
		at := &all[i]
		for _, shorter := range all[i+1:] { // of these none has got the rules of others yet
			if open(at.Rules) && shorter.Match == nginx.Prefix && selects(shorter.Path, at.Path) && (at.Match == nginx.Prefix || shorter.Path != prefixText(at.Path)) {
				at.Rules = append(slices.Clip(at.Rules), shorter.Rules...)
			}
		}
	}
}

// open reports whether a request may pass all rules.
func open(rules []nginx.Rule) bool {
	return len(rules) == 0 || len(rules[len(rules)-1].Conditions) > 0
}

// selects reports whether a prefix selects a path.
func selects(prefix, path string) bool {
	return prefix == "/" || path == prefix || strings.HasPrefix(path, prefix+"/")
}

// name is an object's namespace and name.
func name(o kates.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
