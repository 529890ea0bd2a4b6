package translate

import (
	"cmp"
	"slices"
	"strings"
)

// thing is an object of a tenant in few words: an Ingress with one rule, a Gateway with one
// listener, or an HTTPRoute with one host and match.
type thing struct {
	kind            byte // i, g or r
	namespace, name string
	age             int    // 0 is the oldest
	host            string // empty: all
	tls, broken     bool   // it has a certificate, of which there is no Secret
	named           string // in spec.tls of an Ingress
	port            int    // of a Gateway
	open            bool   // a Gateway for Routes of all namespaces
	to              string // the Gateway of a Route
	match           string // Exact, Prefix or Regex
	text, path      string // as it is written, and as package path cleans it; empty if that is none
	method, header  bool   // conditions of a Route
}

// asked is a request.
type asked struct {
	port       int
	name, path string
	conditions bool // all of them are met, or none
}

// claim is a thing at a host of a port. That of a Gateway has no path.
type claim struct {
	*thing
	door   *thing // the Gateway of a Route, or the thing itself
	port   int
	secure bool
	at     string
}

// The oracle says who has a request, by the rules that claims.go states, without that code: claims
// finds who claims which host, and decide which object answers and whose certificate is shown.

func age(a, b *thing) int {
	return cmp.Or(cmp.Compare(a.age, b.age), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}
func wide(w, h string) bool { return w != h && (w == "" || w[0] == '*' && strings.HasSuffix(h, w[1:])) }
func (c claim) has(path string) bool {
	return c.match == "Prefix" && (c.path == "/" || path == c.path || strings.HasPrefix(path, c.path+"/"))
}
func (c claim) like(d claim) bool {
	return c.text == d.text && c.match == d.match && c.namespace == d.namespace
}

func claims(things []*thing) (all []claim) { // from the oldest, as the things are
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

// decide returns the object that answers; the host of the server, the namespaces of its certificates
// at the port and at that of Ingresses, and who gives them; and what is claimed there by anybody.
func decide(all []claim, q asked) (winner *thing, shown []string, claimed []claim) {
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
		return answers(claimed, q), shown, claimed
	}
	return nil, []string{"none", "", ""}, nil
}

// answers returns the object that answers on a host.
func answers(s []claim, q asked) *thing {
	pick := func(of []claim, is func(claim) bool) []claim {
		return slices.DeleteFunc(slices.Clone(of), func(c claim) bool { return !is(c) })
	}
	s = pick(s, func(c claim) bool { return c.kind != 'g' })
	order := func(of []claim) []claim { // the namespace with the oldest first, and then the conditions
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
	since := func(c claim) *thing { return s[slices.IndexFunc(s, c.like)].thing }
	regexes := pick(s, func(c claim) bool {
		return c.match == "Regex" && matches(c.text, q.path) && !slices.ContainsFunc(s, func(d claim) bool {
			return d.namespace != c.namespace && age(d.thing, since(c)) < 0 && (d.has(q.path) || d.match == "Regex" && d.text == c.text)
		})
	})
	same := "/" + strings.Trim(q.path, "/")
	exact := pick(s, func(c claim) bool {
		return c.match == "Exact" && c.path == q.path || c.match == "Prefix" && c.path == same
	})
	exact = order(pick(exact, func(c claim) bool {
		first := exact[slices.IndexFunc(exact, func(d claim) bool { return d.namespace == c.namespace })].thing
		return c.match == "Prefix" || !slices.ContainsFunc(regexes, func(r claim) bool { return r.namespace != c.namespace && age(since(r), first) < 0 })
	}))
	always := slices.IndexFunc(exact, func(c claim) bool { return !c.method && !c.header })
	reached := exact[:cmp.Or(always+1, len(exact))]
	chain := regexes
	if slices.ContainsFunc(reached, func(c claim) bool { return c.match == "Exact" }) {
		chain = reached
	} else if len(regexes) > 0 {
		best := slices.MinFunc(regexes, func(a, b claim) int {
			return cmp.Or(age(since(a), since(b)), len(b.text)-len(a.text), strings.Compare(a.text, b.text))
		})
		chain = order(pick(regexes, best.like))
	}
	if len(chain) == 0 || chain[0].match != "Regex" {
		for path := same; ; path = path[:max(1, strings.LastIndex(path, "/"))] {
			chain = append(chain, order(pick(s, func(c claim) bool { return c.match == "Prefix" && c.path == path }))...)
			if path == "/" {
				break
			}
		}
	}
	if i := slices.IndexFunc(chain, func(c claim) bool { return !c.method && !c.header || q.conditions }); i >= 0 {
		return chain[i].thing
	}
	return nil
}
