package translate

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/internal/test/suite/rounds"
)

// claim is a thing at a host of a port. That of a Gateway has no path.
type claim struct {
	*thing
	door   *thing // the Gateway of a Route, or the thing itself
	port   int
	secure bool
	at     string
}

// This is a model of all the rules that claims.go states, without that code: claims finds who
// claims which host, and decide which object answers and whose certificate is shown. The model sees
// more than the oracle, which says only what may change.

func (c claim) has(path string) bool {
	return c.match == "Prefix" && (c.path == "/" || path == c.path || strings.HasPrefix(path, c.path+"/"))
}
func (c claim) like(d claim) bool {
	return c.text == d.text && c.match == d.match && c.namespace == d.namespace
}

// claims returns the claims of things, both from the oldest.
func claims(things []*thing) (all []claim) {
	var doors []*thing
	door := func(is func(*thing) bool) bool { return slices.ContainsFunc(doors, is) }
	for _, g := range things {
		taken := door(func(d *thing) bool { return d.port == g.port && (d.tls != g.tls || d.host == g.host) })
		if g.kind == 'g' && !taken && (g.port == 8080 || g.tls == (g.port == 443)) {
			doors, all = append(doors, g), append(all, claim{g, g, g.port, g.tls, g.host})
		}
	}
	for _, r := range things {
		if r.kind == 'i' && r.path != "" {
			all = append(all, claim{r, r, 80, false, r.host}, claim{r, r, 443, true, r.host})
		}
		for _, d := range doors {
			at := r.host
			if wide(at, d.host) {
				at = d.host
			}
			mine := r.kind == 'r' && r.path != "" && r.to == d.namespace+"/"+d.name && (d.open || d.namespace == r.namespace)
			if mine && (at == d.host || wide(d.host, at)) && !door(func(e *thing) bool {
				return e.port == d.port && wide(d.host, e.host) && (e.host == at || wide(e.host, at)) && (e.namespace == d.namespace || age(e, r) < 0)
			}) {
				all = append(all, claim{r, d, d.port, d.tls, at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b claim) int { return age(a.thing, b.thing) })
	return all
}

// decide returns the object that answers; and the host of the server, the namespaces of its
// certificates at the port and at that of Ingresses, and who gives them.
func decide(all []claim, q asked) (winner *thing, shown []string) {
	var claimed []claim
	gives := func(c claim) bool {
		o := all[slices.IndexFunc(all, func(o claim) bool { return o.at == c.at })]
		mine := c.namespace == o.namespace || c.namespace == o.door.namespace || c.door.namespace == o.namespace || c.door.namespace == o.door.namespace
		return mine && (c.kind != 'i' || c.tls && (c.named == "" || c.named == c.host || wide(c.named, c.host)))
	}
	for _, at := range []string{q.name, "*.t", ""} {
		here := func(port int, kinds string) (s []claim) { // who gives the certificate of a server of TLS
			for _, kind := range kinds {
				for _, c := range all {
					if c.at == at && c.port == port && c.kind == byte(kind) && c.secure && gives(c) {
						s = append(s, c)
					}
				}
			}
			return s
		}
		found := len(here(q.port, "igr")) > 0
		for _, c := range all {
			if c.at == at && c.port == q.port && (!c.secure || found && (c.kind != 'i' || len(here(443, "i")) > 0)) {
				claimed = append(claimed, c)
			}
		}
		if len(claimed) == 0 || !wide("*.t", q.name) && at == "*.t" {
			claimed = nil
			continue
		}
		shown = []string{at, "", ""}
		for k, s := range [][]claim{here(q.port, "igr"), here(443, "i")} {
			if i := slices.IndexFunc(s, func(c claim) bool { return !c.door.broken }); i >= 0 {
				shown[k+1] = s[i].door.namespace
			} else if len(s) > 0 {
				shown[k+1] = "refuses"
			}
			if len(s) > 0 {
				shown = append(shown, s[0].door.namespace+"/"+s[0].door.name)
			}
		}
		return answers(claimed, q), shown
	}
	return nil, []string{"none", "", ""}
}

// ordered puts the namespace with the oldest object first, and then the rules with more conditions.
func ordered(of []claim) []claim {
	first := func(c claim) *thing {
		return of[slices.IndexFunc(of, func(d claim) bool { return d.namespace == c.namespace })].thing
	}
	bit := map[bool]int{true: -1}
	return slices.SortedStableFunc(slices.Values(of), func(a, b claim) int {
		if a.namespace != b.namespace {
			return age(first(a), first(b))
		}
		return cmp.Or(bit[a.match == "Exact"]-bit[b.match == "Exact"], bit[a.method]-bit[b.method], bit[a.header]-bit[b.header], age(a.thing, b.thing))
	})
}

// answers returns the object that answers on a host.
func answers(s []claim, q asked) *thing {
	pick := func(of []claim, is func(claim) bool) []claim {
		return slices.DeleteFunc(slices.Clone(of), func(c claim) bool { return !is(c) })
	}
	s = pick(s, func(c claim) bool { return c.kind != 'g' })
	always := func(c claim) bool { return !c.method && !c.header }
	level := func(path string) []claim { // those of a prefix that requests reach
		all := ordered(pick(s, func(c claim) bool { return c.match == "Prefix" && c.path == path }))
		if i := slices.IndexFunc(all, always); i >= 0 {
			all = all[:i+1]
		}
		return all
	}
	since := func(c claim) *thing { return s[slices.IndexFunc(s, c.like)].thing }
	regexes := pick(s, func(c claim) bool {
		return c.match == "Regex" && matches(c.text, q.path) && !slices.ContainsFunc(s, func(d claim) bool {
			same := d.match == "Regex" && d.text == c.text || d.has(q.path) && slices.Contains(level(d.path), d)
			return same && d.namespace != c.namespace && age(d.thing, since(c)) < 0
		})
	})
	slices.SortStableFunc(regexes, func(a, b claim) int {
		return cmp.Or(age(since(a), since(b)), len(b.text)-len(a.text), strings.Compare(a.text, b.text))
	})
	same := "/" + strings.Trim(q.path, "/")
	exact := pick(s, func(c claim) bool {
		return c.match == "Exact" && c.path == q.path || c.match == "Prefix" && c.path == same
	})
	exact = ordered(pick(exact, func(c claim) bool {
		first := exact[slices.IndexFunc(exact, func(d claim) bool { return d.namespace == c.namespace })].thing
		return c.match == "Prefix" || len(regexes) == 0 || regexes[0].namespace == c.namespace || age(since(regexes[0]), first) > 0
	}))
	reached := exact[:cmp.Or(slices.IndexFunc(exact, always)+1, len(exact))]
	chain := regexes
	if slices.ContainsFunc(reached, func(c claim) bool { return c.match == "Exact" }) {
		chain = reached
	} else if len(regexes) > 0 {
		chain = ordered(pick(regexes, regexes[0].like))
	}
	if len(chain) == 0 || chain[0].match != "Regex" {
		for path := same; ; path = path[:max(1, strings.LastIndex(path, "/"))] {
			chain = append(chain, level(path)...)
			if path == "/" {
				break
			}
		}
	}
	if i := slices.IndexFunc(chain, func(c claim) bool { return always(c) || q.conditions }); i >= 0 {
		return chain[i].thing
	}
	return nil
}

// answer is all of a configuration that one request depends on.
type answer struct {
	server      nginx.Server // without locations, and without the object that is at fault for it
	certificate nginx.Certificate
	rule        *nginx.Rule
	endpoints   []string
}

func answerTo(c *nginx.Config, q asked) (a answer) {
	s := chosen(c, q)
	if s == nil {
		return a
	}
	a.server, a.certificate, a.rule = *s, c.Certificates[s.Certificate], ruleFor(s, q)
	a.server.Locations, a.server.Source = nil, nginx.Object{}
	if a.rule != nil {
		for _, b := range a.rule.Backends {
			a.endpoints = append(a.endpoints, c.Upstreams[b.Upstream]...)
		}
	}
	return a
}

// requests are those that are asked in each case.
var requests = func() (all []asked) {
	for _, port := range askedPorts {
		for _, name := range askedNames {
			for _, path := range askedPaths {
				all = append(all, asked{port, name, path, true}, asked{port, name, path, false})
			}
		}
	}
	return all
}()

// judge checks that those objects answer that have the requests by the rules, and that the objects
// of evil change nothing else.
func (all *tenants) judge(t require.TestingT, things []*thing) {
	with := &Translate(all.snapshot(things, ""), Options{}).Config
	without := &Translate(all.snapshot(things, "evil"), Options{}).Config
	everybody := claims(things)
	others := claims(slices.DeleteFunc(slices.Clone(things), func(t *thing) bool { return t.namespace == "evil" }))
	ports, conditions := map[int]bool{}, false
	for _, c := range everybody {
		ports[c.port], conditions = true, conditions || c.method || c.header
	}
	for _, q := range requests {
		if !ports[q.port] && !listens(with, q.port) || !q.conditions && !conditions {
			continue // nothing is there; or it is as it is with the conditions
		}
		winner, shown := decide(everybody, q)
		former, formerShown := decide(others, q)
		now := answerTo(with, q)
		by, certificate := now.rule, now.certificate.Source.Namespace
		if by == nil && winner != nil || by != nil && (winner == nil || string(by.Source.UID) != winner.namespace+"/"+winner.name) {
			require.Failf(t, "the rules say otherwise", "%+v: %+v answers, not %+v\n%s", q, by, winner, describe(things))
		}
		if now.server.TLS && cmp.Or(certificate, "refuses") != shown[1] {
			require.Failf(t, "the rules say otherwise", "%+v: the certificate is of %q, not %q\n%s", q, certificate, shown, describe(things))
		}
		if winner == former && slices.Equal(shown, formerShown) {
			if before := answerTo(without, q); !reflect.DeepEqual(now, before) {
				require.Failf(t, "the attacker changes an answer", "%+v:\n%+v %+v\n%+v %+v\n%s", q, before.server, before.rule, now.server, now.rule, describe(things))
			}
		}
	}
}

func TestModelTheRulesSayWhoAnswers(t *testing.T) {
	all := newTenants(t)
	rounds.Check(t, func(t *rapid.T, step func()) {
		all.judge(t, drawnThings(t))
		step()
	})
}
