package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

const toWeb = `backendRefs: [{name: web, port: 80}]`

// routeOf is an HTTPRoute in namespace prod: head is the rest of its spec, and each rule a line of
// YAML.
func routeOf(name, head string, rules ...string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: prod, generation: 4}
spec:
  %s
  rules:
  - {%s}
`, name, head, strings.Join(rules, "}\n  - {"))
}

const toEdge = `parentRefs: [{name: edge}]`

// parents are the conditions of each parent of a Route.
func parents(t *testing.T, d *Desired, namespacedName string) (all []string) {
	t.Helper()
	for _, p := range statusOf[*gatewayv1.HTTPRouteStatus](t, d, "HTTPRoute", namespacedName).Parents {
		assert.EqualValues(t, Controller, p.ControllerName)
		all = append(all, strings.Join(said(p.Conditions), ", "))
	}
	return all
}

// served are the rules of a Config, as "port host path → upstreams or status".
func served(c nginx.Config) (all []string) {
	for _, s := range c.Servers {
		for _, l := range s.Locations {
			for _, r := range l.Rules {
				to := fmt.Sprint(r.Status)
				if r.Redirect != nil {
					to = "redirect"
				}
				for i, b := range r.Backends {
					to = strings.Trim(fmt.Sprintf("%s %s*%d", map[bool]string{false: to}[i == 0], b.Upstream, b.Weight), " ")
				}
				all = append(all, fmt.Sprintf("%d %s %s %s → %s", s.Port, s.Host, l.Match, l.Path, to))
			}
		}
	}
	return all
}

func TestARouteAttachesToTheListenersThatItsParentRefsName(t *testing.T) {
	edge := gatewayOf("edge",
		`{name: http, port: 80, protocol: HTTP}`,
		`{name: shop, port: 8080, protocol: HTTP, hostname: "*.example.com"}`,
		`{name: closed, port: 8081, protocol: HTTP, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: TLSRoute}]}}`,
		`{name: trial, port: 8082, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {stage: trial}}}}}`,
		`{name: all, port: 8083, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}`)
	const fine = "Accepted True Accepted, ResolvedRefs True ResolvedRefs"
	refused := func(reason string) []string {
		return []string{"Accepted False " + reason + ", ResolvedRefs True ResolvedRefs"}
	}
	for _, test := range []struct {
		name, namespace, head string
		want                  []string
		served                []string
		attached              string // to each listener
	}{
		{name: "all listeners that allow it", head: toEdge, want: []string{fine}, attached: "1 1 0 0 1", served: []string{"80 ", "8080 *.example.com", "8083 "}},
		{name: "one of them", head: `parentRefs: [{name: edge, sectionName: shop}]`, want: []string{fine}, attached: "0 1 0 0 0", served: []string{"8080 *.example.com"}},
		{name: "by its port", head: `parentRefs: [{name: edge, port: 80}]`, want: []string{fine}, attached: "1 0 0 0 0", served: []string{"80 "}},
		{name: "two of them", head: `parentRefs: [{name: edge, sectionName: http}, {name: edge, sectionName: shop}]`, want: []string{fine, fine}, attached: "1 1 0 0 0", served: []string{"80 ", "8080 *.example.com"}},
		{name: "no such section", head: `parentRefs: [{name: edge, sectionName: none}]`, want: refused("NoMatchingParent"), attached: "0 0 0 0 0"},
		{name: "section and port of two listeners", head: `parentRefs: [{name: edge, sectionName: http, port: 8080}]`, want: refused("NoMatchingParent"), attached: "0 0 0 0 0"},
		{name: "a listener for another kind", head: `parentRefs: [{name: edge, sectionName: closed}]`, want: refused("NotAllowedByListeners"), attached: "0 0 0 0 0"},
		{name: "a listener for another namespace", head: `parentRefs: [{name: edge, sectionName: trial}]`, want: refused("NotAllowedByListeners"), attached: "0 0 0 0 0"},
		{name: "from a namespace that is selected", namespace: "test", head: `parentRefs: [{name: edge, namespace: prod, sectionName: trial}]`, want: []string{fine}, attached: "0 0 0 1 0", served: []string{"8082 "}},
		{name: "from any namespace", namespace: "test", head: `parentRefs: [{name: edge, namespace: prod}]`, want: []string{fine}, attached: "0 0 0 1 1", served: []string{"8082 ", "8083 "}},
		{name: "from another namespace", namespace: "test", head: `parentRefs: [{name: edge, namespace: prod, sectionName: http}]`, want: refused("NotAllowedByListeners"), attached: "0 0 0 0 0"},
		{name: "no common hostname", head: `parentRefs: [{name: edge, sectionName: shop}]
  hostnames: [example.com, a.example.net]`, want: refused("NoMatchingListenerHostname"), attached: "0 0 0 0 0"},
		{name: "the hostnames in common", head: `parentRefs: [{name: edge, sectionName: shop}]
  hostnames: [a.b.example.com, "*.c.example.com", example.com, "*.com"]`, want: []string{fine}, attached: "0 1 0 0 0", served: []string{"8080 *.c.example.com", "8080 *.example.com", "8080 a.b.example.com"}},
		{name: "a hostname that is none, and one that is", head: `parentRefs: [{name: edge, sectionName: http}]
  hostnames: ["a b", 10.0.0.1, ok.example.com]`, want: []string{fine}, attached: "1 0 0 0 0", served: []string{"80 ok.example.com"}},
		{name: "another controller's Gateway, too", head: `parentRefs: [{name: edge, sectionName: http}, {name: foreign}, {kind: Service, group: "", name: web}]`, want: []string{fine}, attached: "1 0 0 0 0", served: []string{"80 "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			head, namespace := test.head, test.namespace
			if namespace == "" {
				namespace = "prod"
			}
			route := strings.Replace(routeOf("shop", head, `backendRefs: [{name: web, namespace: prod, port: 80}]`), "namespace: prod", "namespace: "+namespace, 1)
			foreign := strings.Replace(gatewayOf("foreign", `{name: http, port: 90, protocol: HTTP}`), "gatewayClassName: kates", "gatewayClassName: other", 1)
			d := Translate(snapshotOf(t, cluster+grant("prod", "HTTPRoute", "test", "Service", "web"), edge, foreign, route), Options{})
			assert.Equal(t, test.want, parents(t, d, namespace+"/shop"))
			var attached []string
			for _, l := range statusOf[*gatewayv1.GatewayStatus](t, d, "Gateway", "prod/edge").Listeners {
				attached = append(attached, fmt.Sprint(l.AttachedRoutes))
			}
			assert.Equal(t, test.attached, strings.Join(attached, " "))
			var want []string
			for _, s := range test.served {
				want = append(want, s+" Prefix / → prod.web.80*1")
			}
			assert.Equal(t, want, served(d.Config))
		})
	}
}

func TestARouteThatNamesOurGatewayNoMoreLosesOurParents(t *testing.T) {
	left := routeOf("left", `parentRefs: [{name: foreign}]`, toWeb) + `
status: {parents: [{parentRef: {name: edge}, controllerName: gateway.example.com/kates, conditions: []}]}
`
	d := Translate(snapshotOf(t, cluster, left, routeOf("foreign", `parentRefs: [{name: foreign}]`, toWeb)), Options{})
	assert.Empty(t, statusOf[*gatewayv1.HTTPRouteStatus](t, d, "HTTPRoute", "prod/left").Parents)
	assert.Empty(t, problemsOf(d, "HTTPRoute", "prod/foreign"))
	for _, r := range d.Reports {
		assert.NotEqual(t, "foreign", r.Object.GetName(), "a Route of others is left alone")
	}
}

func TestRequestsGoToTheNarrowestListenerAlone(t *testing.T) {
	d := Translate(snapshotOf(t, cluster,
		gatewayOf("edge", `{name: all, port: 80, protocol: HTTP}`, `{name: wild, port: 80, protocol: HTTP, hostname: "*.example.com"}`,
			`{name: one, port: 80, protocol: HTTP, hostname: a.example.com}`, `{name: else, port: 81, protocol: HTTP, hostname: a.example.com}`),
		routeOf("wide", `parentRefs: [{name: edge, sectionName: all}]
  hostnames: [a.example.com, b.example.com, "*.example.com", "*.b.example.com", c.example.net]`,
			`matches: [{path: {value: /wide}}], `+toWeb),
		routeOf("wild", "parentRefs: [{name: edge, sectionName: wild}]\n  hostnames: [a.example.com, b.example.com]", `matches: [{path: {value: /wild}}], `+toWeb)), Options{})
	assert.Equal(t, []string{
		"80 b.example.com Prefix /wild → prod.web.80*1",
		"80 c.example.net Prefix /wide → prod.web.80*1",
	}, served(d.Config))
	var hosts []string
	for _, s := range d.Config.Servers {
		hosts = append(hosts, fmt.Sprintf("%d %s", s.Port, s.Host))
	}
	assert.Equal(t, []string{"80 ", "80 *.example.com", "80 a.example.com", "80 b.example.com", "80 c.example.net", "81 a.example.com"}, hosts,
		"each listener has a server, which answers 404 if no Route is for it")
}

func TestBackendsThatCannotBeResolvedAnswer500AndSayWhy(t *testing.T) {
	for _, test := range []struct{ name, rule, extra, want, served string }{
		{name: "one", rule: toWeb, want: "True ResolvedRefs", served: "prod.web.80*1"},
		{name: "by weight", rule: `backendRefs: [{name: web, port: 80, weight: 9}, {name: web, port: 80, weight: 0}]`, want: "True ResolvedRefs", served: "prod.web.80*9"},
		{name: "none", rule: `matches: []`, want: "True ResolvedRefs", served: "500"},
		{name: "none with a weight", rule: `backendRefs: [{name: web, port: 80, weight: 0}]`, want: "True ResolvedRefs", served: "500"},
		{name: "no Service", rule: `backendRefs: [{name: none, port: 80}]`, want: "False BackendNotFound", served: "*1"},
		{name: "one of two", rule: `backendRefs: [{name: none, port: 80, weight: 1}, {name: web, port: 80, weight: 3}]`, want: "False BackendNotFound", served: "*1 prod.web.80*3"},
		{name: "no such port", rule: `backendRefs: [{name: web, port: 90}]`, want: "False BackendNotFound", served: "*1"},
		{name: "no port", rule: `backendRefs: [{name: web}]`, want: "False BackendNotFound", served: "*1"},
		{name: "another kind", rule: `backendRefs: [{kind: Bucket, group: example.com, name: web, port: 80}]`, want: "False InvalidKind", served: "*1"},
		{name: "a protocol that is not served", rule: `backendRefs: [{name: web, port: 81}]`, want: "False UnsupportedProtocol", served: "*1"},
		{name: "without a grant", rule: `backendRefs: [{name: web, namespace: test, port: 80}]`, want: "False RefNotPermitted", served: "*1"},
		{name: "with a grant for another namespace", rule: `backendRefs: [{name: web, namespace: test, port: 80}]`, extra: grant("test", "HTTPRoute", "dev", "Service", "web"), want: "False RefNotPermitted", served: "*1"},
		{name: "with a grant for Gateways", rule: `backendRefs: [{name: web, namespace: test, port: 80}]`, extra: grant("test", "Gateway", "prod", "Service", "web"), want: "False RefNotPermitted", served: "*1"},
		{name: "with a grant", rule: `backendRefs: [{name: web, namespace: test, port: 80}]`, extra: grant("test", "HTTPRoute", "prod", "Service", `""`), want: "True ResolvedRefs", served: "test.web.80*1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			away := strings.ReplaceAll(cluster[strings.Index(cluster, "apiVersion: v1\nkind: Service"):], "namespace: prod", "namespace: test")
			d := Translate(snapshotOf(t, cluster, away, gatewayOf("edge", `{name: http, port: 80, protocol: HTTP}`), routeOf("shop", toEdge, test.rule)+test.extra), Options{})
			assert.Equal(t, []string{"Accepted True Accepted, ResolvedRefs " + test.want}, parents(t, d, "prod/shop"))
			assert.Equal(t, []string{"80  Prefix / → " + test.served}, served(d.Config))
			bad := strings.HasPrefix(test.want, "False")
			require.Equal(t, bad, len(problemsOf(d, "HTTPRoute", "prod/shop")) == 1)
		})
	}
}

func TestRoutesOfOneHostAndPathTheOlderHasIt(t *testing.T) {
	d := Translate(snapshotOf(t, cluster, gatewayOf("edge", `{name: http, port: 80, protocol: HTTP}`),
		routeOf("zebra", toEdge, toWeb), routeOf("ant", toEdge, `backendRefs: [{name: none, port: 80}]`)), Options{})
	assert.Equal(t, []string{"80  Prefix / → prod.web.80*1"}, served(d.Config))
	assert.Contains(t, strings.Join(problemsOf(d, "HTTPRoute", "prod/ant"), "\n"), "Conflict: ")
	assert.Empty(t, problemsOf(d, "HTTPRoute", "prod/zebra"))
}

func TestWhatNginxRefusesIsServedAsItWasBefore(t *testing.T) {
	edge, bad := gatewayOf("edge", `{name: http, port: 80, protocol: HTTP}`), routeOf("bad", toEdge, toWeb)
	for _, lastGood := range []bool{true, false} {
		snap := snapshotOf(t, cluster, edge, bad)
		old := snap.Routes[0].DeepCopy()
		old.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: new("/old")}}}
		refusal, want := Refusal{Version: "7", Message: "unexpected end"}, []string(nil)
		if lastGood {
			refusal.LastGood, want = old, []string{"80  Prefix /old → prod.web.80*1"}
		}
		d := Translate(snap, Options{Refused: map[types.UID]Refusal{old.UID: refusal}})
		assert.Equal(t, want, served(d.Config))
		assert.Equal(t, []string{"Accepted False UnsupportedValue, ResolvedRefs True ResolvedRefs"}, parents(t, d, "prod/bad"))
		assert.Contains(t, strings.Join(problemsOf(d, "HTTPRoute", "prod/bad"), ""), "unexpected end")

		gone := snap.Gateways[0].DeepCopy()
		gone.Spec.Listeners[0].Port = 81
		refusal, want = Refusal{Version: "7", Message: "unexpected end"}, nil
		if lastGood {
			refusal.LastGood, want = gone, []string{"81  Prefix / → prod.web.80*1"}
		}
		d = Translate(snap, Options{Refused: map[types.UID]Refusal{gone.UID: refusal}})
		assert.Equal(t, want, served(d.Config))
		status := statusOf[*gatewayv1.GatewayStatus](t, d, "Gateway", "prod/edge")
		assert.Equal(t, []string{"Accepted True Accepted", "Programmed False Invalid"}, said(status.Conditions))
		assert.Len(t, problemsOf(d, "Gateway", "prod/edge"), 1)
	}
}
