package translate

import (
	"cmp"
	"fmt"
	"net/url"
	paths "path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/internal/suite/rounds"
)

// The attacker of these tests is namespace evil.
var tenantNames = []string{"evil", "blue", "evil", "red"}

// Few hosts and paths, so that many claims are in dispute, each path in several spellings.
var (
	hostTexts = []string{"a.t", "a.t", "a.t", "a.t", "b.t", "*.t", ""}
	pathTexts = []string{
		"/", "//", "/a/..", "/a", "//a", "/a/", "/%61", "/x/../a/.", "/a/b", "/a%2Fb", "/a//b/", "/c", "/./c", "/%2e%2e",
	}
	regexTexts = []string{"/.*", "/a.*", "/a/[b]", "/(a|c)", "/c", "^/a"}
)

// thingOf makes a thing of a number. texts are paths of the attacker beside those above.
func thingOf(word uint64, texts ...string) *thing {
	next := func(n int) int {
		at := int(word % uint64(n))
		word /= uint64(n)
		return at
	}
	t := &thing{kind: "ggiiiirrr"[next(9)], namespace: tenantNames[next(4)]}
	t.age, t.host = next(8), hostTexts[next(len(hostTexts))]
	t.match = []string{"Prefix", "Prefix", "Exact", "Regex"}[next(4)]
	if t.match == "Regex" {
		t.text = regexTexts[next(len(regexTexts))]
		t.path = "regex"
		if t.kind == 'i' && t.text[0] != '/' {
			t.path = ""
		}
	} else {
		t.text = pathTexts[next(len(pathTexts))]
		if i := next(2); t.namespace == "evil" && i < len(texts) {
			t.text = texts[i]
		}
		t.path = clean(t.text, t.match)
	}
	t.tls, t.broken, t.open = next(2) == 0, next(4) == 0, next(2) == 0
	t.named = []string{"", t.host, "*.t", "b.t"}[next(4)]
	t.port, t.method, t.header = []int{80, 443, 8080, 443, 80}[next(5)], next(3) == 0, next(3) == 0
	t.to = fmt.Sprint(tenantNames[1+next(3)], "/g", next(4)/3)
	t.name = fmt.Sprint(string(t.kind), next(9))
	if t.kind == 'g' {
		t.name = fmt.Sprint("g", next(4)/3)
	}
	if t.kind != 'r' {
		t.method, t.header = false, false
	}
	return t
}

// clean is the path that a text means, without the code that is tested. It is empty if the text
// means none.
func clean(text, match string) string {
	plain, err := url.PathUnescape(text)
	short := paths.Clean("." + plain)
	control := strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f })
	if err != nil || control || !strings.HasPrefix(text, "/") || short == ".." || strings.HasPrefix(short, "../") || strings.ToValidUTF8(plain, "?") != plain {
		return ""
	}
	long := paths.Clean(plain)
	last := plain[strings.LastIndex(plain, "/")+1:]
	if match == "Exact" && long != "/" && (last == "" || last == "." || last == "..") {
		long += "/"
	}
	return long
}

var compiled sync.Map

// matches reports whether a regular expression matches a path from its beginning.
func matches(text, path string) bool {
	re, ok := compiled.Load(text)
	if !ok {
		re, _ = compiled.LoadOrStore(text, regexp.MustCompile("^(?:"+text+")"))
	}
	return re.(*regexp.Regexp).MatchString(path)
}

// tenants has what is the same in each case: Services, EndpointSlices and Secrets.
type tenants struct {
	classes  []*networkingv1.IngressClass
	gateways []*gatewayv1.GatewayClass
	services map[types.NamespacedName]*corev1.Service
	slices   []*discoveryv1.EndpointSlice
	secrets  map[types.NamespacedName]*corev1.Secret
}

func newTenants(t require.TestingT) *tenants {
	all := &tenants{services: map[types.NamespacedName]*corev1.Service{}, secrets: map[types.NamespacedName]*corev1.Secret{}}
	ca := newAuthority(t)
	snap := snapshotOf(t, ourClass, cluster)
	all.classes, all.gateways = snap.Classes, snap.GatewayClasses
	for i, namespace := range []string{"blue", "evil", "red"} {
		web := snap.Services[types.NamespacedName{Namespace: "prod", Name: "web"}].DeepCopy()
		web.Namespace = namespace
		all.services[name(web)] = web
		one := snap.Slices[0].DeepCopy()
		one.Namespace, one.Endpoints[0].Addresses = namespace, []string{fmt.Sprint("10.0.0.", i+1)}
		all.slices = append(all.slices, one)
		chain, key := ca.issue(t, "*.t")
		cert := secret("cert", chain, key)
		cert.Namespace, cert.UID = namespace, types.UID("Secret/"+namespace)
		all.secrets[name(cert)] = cert
	}
	return all
}

// snapshot is that of some things, with what is in the namespaces of them.
func (all *tenants) snapshot(things []*thing, out string) *Snapshot {
	snap := &Snapshot{
		Classes: all.classes, GatewayClasses: all.gateways,
		Services: map[types.NamespacedName]*corev1.Service{}, Secrets: map[types.NamespacedName]*corev1.Secret{},
	}
	for key, s := range all.services {
		if key.Namespace != out {
			snap.Services[key], snap.Secrets[types.NamespacedName{Namespace: key.Namespace, Name: "cert"}] = s, all.secrets[types.NamespacedName{Namespace: key.Namespace, Name: "cert"}]
		}
	}
	for _, s := range all.slices {
		if s.Namespace != out {
			snap.Slices = append(snap.Slices, s)
		}
	}
	for _, t := range things {
		if t.namespace == out {
			continue
		}
		switch t.kind {
		case 'i':
			snap.Ingresses = append(snap.Ingresses, t.ingress())
		case 'g':
			snap.Gateways = append(snap.Gateways, t.gateway())
		case 'r':
			snap.Routes = append(snap.Routes, t.route())
		}
	}
	return snap
}

// chosen is the server of a request, as nginx chooses it.
func chosen(c *nginx.Config, q asked) *nginx.Server {
	var best *nginx.Server
	for i := range c.Servers {
		s := &c.Servers[i]
		covers := s.Host == q.name || s.Host == "" || s.Host[0] == '*' && strings.HasSuffix(q.name, s.Host[1:])
		if s.Port == q.port && covers && (best == nil || s.Host == q.name || best.Host == "") {
			best = s
		}
	}
	return best
}

// ruleFor is the rule of a request at a server, as nginx chooses it.
func ruleFor(s *nginx.Server, q asked) *nginx.Rule {
	var at *nginx.Location
	under := func(prefix string) bool {
		return prefix == "/" || q.path == prefix || strings.HasPrefix(q.path, prefix+"/")
	}
	for i := range s.Locations {
		l := &s.Locations[i]
		switch {
		case l.Match == nginx.Exact && l.Path == q.path:
			at = l
		case l.Match == nginx.Prefix && (at == nil || at.Match == nginx.Prefix && len(l.Path) > len(at.Path)) && under(l.Path):
			at = l
		case l.Match == nginx.Regex && (at == nil || at.Match == nginx.Prefix) && matches(l.Path, q.path) && !slices.ContainsFunc(l.Except, under):
			at = l
		}
	}
	if at == nil {
		return nil
	}
	for i := range at.Rules {
		if len(at.Rules[i].Conditions) == 0 || q.conditions {
			return &at.Rules[i]
		}
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
	for _, port := range []int{80, 443, 8080} {
		for _, name := range []string{"a.t", "b.t", "c.t", "z.u"} {
			for _, path := range []string{"/", "/a", "/a/", "/a/b", "/a/x", "/c", "/ab"} {
				all = append(all, asked{port, name, path, true}, asked{port, name, path, false})
			}
		}
	}
	return all
}()

// attack checks that what namespace evil has changes nothing of the others, but for what it has by
// the rules. It reports whether evil and another namespace claim one request.
func (all *tenants) attack(t require.TestingT, things []*thing) (disputed bool) {
	things = slices.SortedStableFunc(slices.Values(things), age)
	seen := map[string]bool{}
	things = slices.DeleteFunc(things, func(t *thing) bool {
		key := t.namespace + "/" + t.name
		had := seen[key]
		seen[key] = true
		return had
	})
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
		winner, shown, claimed := decide(everybody, q)
		former, formerShown, _ := decide(others, q)
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
		mine, theirs := false, false
		for _, c := range claimed {
			if c.kind != 'g' && (c.has(q.path) || c.match == "Exact" && c.path == q.path || c.match == "Regex" && matches(c.text, q.path)) {
				mine, theirs = mine || c.namespace == "evil", theirs || c.namespace != "evil"
			}
		}
		disputed = disputed || mine && theirs
	}
	return disputed
}

// listens reports whether anything is served at a port.
func listens(c *nginx.Config, port int) bool {
	return slices.ContainsFunc(c.Servers, func(s nginx.Server) bool { return s.Port == port })
}

func describe(things []*thing) string {
	var lines []string
	for _, t := range things {
		lines = append(lines, fmt.Sprintf("%c %+v", t.kind, *t))
	}
	return strings.Join(lines, "\n")
}

// leastDisputed is the least share of cases with a claim in dispute, in percent, of all but few
// cases.
const leastDisputed, fewCases = 30, 1000

// A step is a case: one translation with the attacker's objects, and one without.
func TestModelTheAttackerChangesNothingOfOthers(t *testing.T) {
	all := newTenants(t)
	cases, disputed := 0, 0
	words := rapid.SliceOfN(rapid.Uint64(), 6, 12)
	rounds.Check(t, func(t *rapid.T, step func()) {
		var things []*thing
		for _, word := range words.Draw(t, "things") {
			things = append(things, thingOf(mixed(word)))
		}
		cases++
		if all.attack(t, things) {
			disputed++
		}
		step()
	})
	t.Logf("%d of %d cases have a claim in dispute", disputed, cases)
	if cases >= fewCases {
		require.GreaterOrEqual(t, 100*disputed, leastDisputed*cases)
	}
}

// mixed spreads what rapid draws, which is small in most cases, over all numbers.
func mixed(word uint64) uint64 {
	word = (word ^ word>>30) * 0xbf58476d1ce4e5b9
	word = (word ^ word>>27) * 0x94d049bb133111eb
	return word ^ word>>31
}

func FuzzTheAttackerChangesNothingOfOthers(f *testing.F) {
	all := newTenants(f)
	for i := range uint64(8) {
		f.Add([]byte(fmt.Sprintf("%064x", mixed(i+1))), pathTexts[i], regexTexts[0])
	}
	f.Fuzz(func(t *testing.T, data []byte, first, second string) {
		var things []*thing
		for ; len(data) >= 8 && len(things) < 12; data = data[8:] {
			word := uint64(0)
			for _, b := range data[:8] {
				word = word<<8 | uint64(b)
			}
			things = append(things, thingOf(word, first, second))
		}
		all.attack(t, things)
	})
}
