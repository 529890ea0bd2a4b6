package translate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// attempt is what the attacker may have by an object, or others by a Gateway of the attacker: a
// host at a port, and there the path of the object. A Gateway has no path.
type attempt struct {
	*thing
	port int
	at   string
}

func evil(t *thing) bool { return t.namespace == "evil" }
func age(a, b *thing) int {
	return cmp.Or(cmp.Compare(a.age, b.age), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}
func wide(w, h string) bool { return w != h && (w == "" || w[0] == '*' && strings.HasSuffix(h, w[1:])) }
func (t *thing) on(p string) bool {
	return t.path == p || t.match == "Regex" && matches(t.text, p) || t.match == "Prefix" && (t.path == "/" || strings.HasPrefix(p, t.path+"/"))
}

// attempts returns those of the attacker. all: an older Gateway of the attacker has a port or a
// host of another Gateway, so all may change.
func attempts(things []*thing) (mine []attempt, all bool) {
	for _, t := range things {
		if t.kind == 'i' && evil(t) && t.path != "" {
			mine = append(mine, attempt{t, 80, t.host}, attempt{t, 443, t.host})
		} else if t.kind == 'g' && evil(t) {
			mine = append(mine, attempt{t, t.port, t.host})
		}
		for _, o := range things {
			attached := t.kind == 'g' && o.kind == 'r' && o.path != "" && o.to == t.namespace+"/"+t.name && (t.open || o.namespace == t.namespace)
			if attached && (evil(t) || evil(o)) {
				mine = append(mine, attempt{o, t.port, map[bool]string{true: t.host, false: o.host}[wide(o.host, t.host)]})
			}
			all = all || slices.ContainsFunc(things, func(e *thing) bool {
				same := e.kind == 'g' && evil(e) && t.kind == 'g' && !evil(t) && e.port == t.port
				return same && (age(e, t) < 0 && (e.tls != t.tls || e.host == t.host) || attached && age(e, o) < 0 && wide(t.host, e.host))
			})
		}
	}
	return mine, all
}

// takes is the oracle: it reports whether the attempt may have a request by the rules that
// claims.go states, where the others answer it by a server and a location, which are nil if there
// is none. of returns the thing of an object.
func (a attempt) takes(q asked, s *nginx.Server, l *nginx.Location, of func(nginx.Object) *thing) bool {
	switch older := func(o nginx.Object) bool { return age(a.thing, of(o)) < 0 }; {
	case a.at != q.name && !wide(a.at, q.name) || s != nil && wide(a.at, s.Host):
		return false
	case s == nil || a.at != s.Host:
		return a.port == q.port || a.kind == 'r' && q.port != 80 // a narrower host
	case older(s.Source) && (s.TLS || l != nil && slices.ContainsFunc(l.Rules, func(r nginx.Rule) bool { return r.Redirect != nil || a.kind == 'r' && r.Source.Kind == "Ingress" })):
		return true // the certificate is of the oldest object of a host, and Ingresses with one redirect
	case s.TLS && s.Certificate == "" && a.port == q.port && strings.Contains(" "+a.namespace+"/ "+a.to, " "+of(s.Source).namespace+"/"):
		return true // a Route of the owner, or at a Gateway of the owner, brings the Gateway's certificate
	case a.port != q.port || a.kind == 'g' || !a.on(q.path):
		return false
	case l == nil || len(l.Rules[0].Conditions) > 0 || !evil(a.thing):
		return true
	case a.match == "Regex" || l.Match == nginx.Regex || strings.Trim(a.path, "/") == strings.Trim(l.Path, "/"):
		return older(l.Rules[0].Source)
	}
	return len(a.path) > len(l.Path)
}
