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
	listener    string // see nginx.Server
	source      nginx.Object
	paths       map[path][]entry
}

type path struct {
	match nginx.PathMatch
	path  string
}

// entry is a rule, and what its precedence among the rules of its path follows from.
type entry struct {
	rule   nginx.Rule
	object kates.Object
	index  int // of the rule within the object
}

// server returns the rules of a server, which may have none yet.
func (t table) server(l listener) *serverRules {
	s := t[l]
	if s == nil {
		s = &serverRules{paths: map[path][]entry{}}
		t[l] = s
	}
	return s
}

// add adds a rule for a path.
func (s *serverRules) add(match nginx.PathMatch, to string, e entry) {
	if match == nginx.Prefix && to != "/" {
		to = strings.TrimSuffix(to, "/")
	}
	e.rule.Source = sourceOf(e.object)
	if e.rule.MatchedPrefix == "" && match == nginx.Prefix {
		e.rule.MatchedPrefix = to
	}
	s.paths[path{match, to}] = append(s.paths[path{match, to}], e)
}

// compare orders the rules of one path: conditions on the method first, then more conditions on
// headers, then on parameters, then the older object, its name, and the order within the object.
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
		cmp.Compare(count(b, nginx.Method), count(a, nginx.Method)),
		cmp.Compare(count(b, nginx.Header), count(a, nginx.Header)),
		cmp.Compare(count(b, nginx.Query), count(a, nginx.Query)),
		older(a.object, b.object),
		cmp.Compare(a.index, b.index),
	)
}

// older orders objects by their age, and then by their names.
func older(a, b kates.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time),
		strings.Compare(a.GetNamespace(), b.GetNamespace()),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

// sourceOf names an object.
func sourceOf(o kates.Object) nginx.Object {
	return nginx.Object{
		Kind: o.GetObjectKind().GroupVersionKind().Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: o.GetUID(), Version: o.GetResourceVersion(),
	}
}

// servers returns the servers in their order. hidden is called for each rule that no request can
// reach, since another object's rule takes all of its requests.
func (t table) servers(hidden func(l listener, p path, e, by entry)) []nginx.Server {
	var all []nginx.Server
	for l, rules := range t {
		all = append(all, nginx.Server{
			Address: l.address, Port: l.port, TLS: l.tls, Host: l.host,
			Certificate: rules.certificate, Listener: rules.listener, Source: rules.source, Locations: rules.locations(l, hidden),
		})
	}
	slices.SortFunc(all, func(a, b nginx.Server) int {
		return cmp.Or(strings.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), strings.Compare(a.Host, b.Host))
	})
	return all
}

func (s *serverRules) locations(l listener, hidden func(l listener, p path, e, by entry)) []nginx.Location {
	var all []nginx.Location
	for p, entries := range s.paths {
		slices.SortStableFunc(entries, compare)
		all = append(all, nginx.Location{Path: p.path, Match: p.match, Rules: reachable(entries, func(e, by entry) { hidden(l, p, e, by) })})
	}
	slices.SortFunc(all, byPath)
	settle(all)
	return all
}

// reachable returns the rules up to the first one without conditions.
func reachable(entries []entry, hidden func(e, by entry)) []nginx.Rule {
	var rules []nginx.Rule
	for i, e := range entries {
		rules = append(rules, e.rule)
		if len(e.rule.Conditions) == 0 {
			for _, other := range entries[i+1:] {
				hidden(other, e)
			}
			break
		}
	}
	return rules
}

var order = map[nginx.PathMatch]int{nginx.Exact: 0, nginx.Prefix: 1, nginx.Regex: 2}

// byPath is the order of nginx.Server.Locations.
func byPath(a, b nginx.Location) int {
	return cmp.Or(cmp.Compare(order[a.Match], order[b.Match]), cmp.Compare(len(b.Path), len(a.Path)), strings.Compare(a.Path, b.Path))
}

// settle gives each location the rules of the shorter prefixes that select its path, too: a
// request that meets no conditions of the longest path goes to the next one.
func settle(all []nginx.Location) {
	for i := range all {
		at := &all[i]
		for _, shorter := range all[i+1:] { // of these none has got the rules of others yet
			if open(at.Rules) && shorter.Match == nginx.Prefix && selects(shorter.Path, at.Path) && at.Match != nginx.Regex {
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
