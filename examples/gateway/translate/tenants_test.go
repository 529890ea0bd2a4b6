package translate

import (
	"fmt"
	"net/url"
	paths "path"
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
	"github.com/kates-go/kates/internal/test/suite/rounds"
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
	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
	secrets  []*corev1.Secret
}

func newTenants(t require.TestingT) *tenants {
	all := &tenants{}
	ca := newAuthority(t)
	snap := snapshotOf(t, ourClass, cluster)
	all.classes, all.gateways = snap.Classes, snap.GatewayClasses
	for i, namespace := range []string{"blue", "evil", "red"} {
		web := snap.service("web").DeepCopy()
		web.Namespace = namespace
		all.services = append(all.services, web)
		one := snap.Slices[0].DeepCopy()
		one.Namespace, one.Endpoints[0].Addresses = namespace, []string{fmt.Sprint("10.0.0.", i+1)}
		all.slices = append(all.slices, one)
		chain, key := ca.issue(t, "*.t")
		cert := secret("cert", chain, key)
		cert.Namespace, cert.UID = namespace, types.UID("Secret/"+namespace)
		all.secrets = append(all.secrets, cert)
	}
	return all
}

// snapshot is that of some things, with what is in the namespaces of them.
func (all *tenants) snapshot(things []*thing, out string) *Snapshot {
	snap := &Snapshot{Classes: all.classes, GatewayClasses: all.gateways}
	for i, s := range all.services {
		if s.Namespace != out {
			snap.Services, snap.Secrets = append(snap.Services, s), append(snap.Secrets, all.secrets[i])
			snap.Slices = append(snap.Slices, all.slices[i])
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

// locationFor is the location of a path at a server, as nginx chooses it.
func locationFor(s *nginx.Server, path string) (at *nginx.Location) {
	under := func(prefix string) bool {
		return prefix == "/" || path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	for i := range s.Locations {
		l := &s.Locations[i]
		switch {
		case l.Match == nginx.Exact && l.Path == path:
			at = l
		case l.Match == nginx.Prefix && (at == nil || at.Match == nginx.Prefix && len(l.Path) > len(at.Path)) && under(l.Path):
			at = l
		case l.Match == nginx.Regex && (at == nil || at.Match == nginx.Prefix) && matches(l.Path, path) && !slices.ContainsFunc(l.Except, under):
			at = l
		}
	}
	return at
}

// ruleFor is the rule of a request at a server, as nginx chooses it.
func ruleFor(s *nginx.Server, q asked) *nginx.Rule {
	at := locationFor(s, q.path)
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

// asked is a request.
type asked struct {
	port       int
	name, path string
	conditions bool // all of them are met, or none
}

// What is asked in each case.
var (
	askedPorts = []int{80, 443, 8080}
	askedNames = []string{"a.t", "b.t", "c.t", "z.u"}
	askedPaths = []string{"/", "/a", "/a/", "/a/b", "/a/x", "/c", "/ab"}
)

// count is what an attack has compared.
type count struct{ cases, disputed, compared, exempt int }

// attack checks that the text of what answers a request is the same without namespace evil, byte
// for byte, unless the oracle says that evil may have the request.
func (n *count) attack(t require.TestingT, all *tenants, things []*thing) {
	with := &Translate(all.snapshot(things, ""), Options{}).Config
	without := &Translate(all.snapshot(things, "evil"), Options{}).Config
	all.unchanged(t, without, with)
	now, before := rendered(with), rendered(without)
	mine, may := attempts(things)
	of := func(o nginx.Object) *thing {
		return things[slices.IndexFunc(things, func(t *thing) bool { return t.name == o.Name && t.namespace == o.Namespace })]
	}
	disputed := false
	for _, port := range askedPorts {
		if !listens(with, port) && !listens(without, port) {
			continue
		}
		for _, name := range askedNames {
			q := asked{port: port, name: name}
			was, is := chosen(without, q), chosen(with, q)
			for _, q.path = range askedPaths {
				var at *nginx.Location
				if was != nil {
					at = locationFor(was, q.path)
				}
				taken := may
				for _, a := range mine {
					taken = taken || a.takes(q, was, at, of)
					disputed = disputed || at != nil && a.kind != 'g' && a.port == port && a.at == was.Host && a.on(q.path)
				}
				if taken {
					n.exempt++
					continue
				}
				n.compared++
				if a, b := before.text(was, q.path), now.text(is, q.path); a != b {
					require.Failf(t, "the attacker changes an answer", "%+v:\n%s\n%s\n%s", q, a, b, describe(things))
				}
			}
		}
	}
	n.cases++
	if disputed {
		n.disputed++
	}
}

// unchanged checks what no rule gives to another namespace.
func (all *tenants) unchanged(t require.TestingT, before, now *nginx.Config) {
	require.Equal(t, before.Settings, now.Settings)
	for id, endpoints := range before.Upstreams {
		if !slices.Equal(endpoints, now.Upstreams[id]) {
			require.Failf(t, "the attacker changes endpoints", "%s: %v %v", id, endpoints, now.Upstreams[id])
		}
	}
	for id, c := range before.Certificates {
		if other, used := now.Certificates[id]; used && (c.Source != other.Source || string(c.Chain)+string(c.Key) != string(other.Chain)+string(other.Key)) {
			require.Failf(t, "the attacker changes a certificate", "%+v %+v", c.Source, other.Source)
		}
	}
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

var words = rapid.SliceOfN(rapid.Uint64(), 6, 12)

// drawnThings are those of a case, from the oldest.
func drawnThings(t *rapid.T) (things []*thing) {
	for _, word := range words.Draw(t, "things") {
		things = append(things, thingOf(mixed(word)))
	}
	return distinct(things)
}

// distinct leaves one thing of each name.
func distinct(things []*thing) []*thing {
	things = slices.SortedStableFunc(slices.Values(things), age)
	seen := map[string]bool{}
	return slices.DeleteFunc(things, func(t *thing) bool {
		key := t.namespace + "/" + t.name
		had := seen[key]
		seen[key] = true
		return had
	})
}

// A step is a case: one translation with the attacker's objects, and one without.
func TestModelTheAttackerChangesNothingOfOthers(t *testing.T) {
	all, n := newTenants(t), count{}
	rounds.Check(t, func(t *rapid.T, step func()) {
		n.attack(t, all, drawnThings(t))
		step()
	})
	t.Logf("%d of %d cases have a claim in dispute; %d requests compared, %d exempt", n.disputed, n.cases, n.compared, n.exempt)
	if n.cases >= fewCases {
		require.GreaterOrEqual(t, 100*n.disputed, leastDisputed*n.cases)
		require.Greater(t, n.compared, n.exempt)
	}
}

// mixed spreads what rapid draws, which is small in most cases, over all numbers.
func mixed(word uint64) uint64 {
	word = (word ^ word>>30) * 0xbf58476d1ce4e5b9
	word = (word ^ word>>27) * 0x94d049bb133111eb
	return word ^ word>>31
}

func FuzzTheAttackerChangesNothingOfOthers(f *testing.F) {
	all, n := newTenants(f), count{}
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
		things = distinct(things)
		n.attack(t, all, things)
		all.judge(t, things)
	})
}
