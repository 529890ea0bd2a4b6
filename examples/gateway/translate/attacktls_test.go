package translate

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// secured are the servers of TLS of a configuration, each with the namespace of its certificate and
// its Listener.
func secured(d *Desired) (all []string) {
	for _, s := range d.Config.Servers {
		if !s.TLS {
			continue
		}
		from := d.Config.Certificates[s.Certificate].Source.Namespace
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", s.Port, cmp.Or(s.Host, "*"), cmp.Or(from, "refuses"), s.Listener)))
	}
	return all
}

// tlsIngress is an Ingress with a rule for one host, and a certificate for others.
func tlsIngress(namespace, name, host, path, hosts string) string {
	return of(namespace, ingressOf(name, "rules:\n"+rule(host, to(path, "Prefix", "web"))+"\ntls: [{hosts: ["+hosts+"], secretName: cert}]"))
}

// tlsGateway is a Gateway with one listener of TLS, for Routes of any namespace.
func tlsGateway(namespace, name, host string, port int) string {
	return of(namespace, gatewayOf(name, fmt.Sprintf(
		`{name: https, port: %d, protocol: HTTPS, hostname: %q, tls: {certificateRefs: [{name: cert}]}, allowedRoutes: {namespaces: {from: All}}}`, port, host)))
}

func tlsRoute(namespace, name, gateway, host string) string {
	in, called, _ := strings.Cut(gateway, "/")
	return of(namespace, routeOf(name, "parentRefs: [{name: "+called+", namespace: "+in+"}]\n  hostnames: ["+host+"]", toWeb))
}

func TestAHostThatAnotherNamespaceHasGetsNoCertificate(t *testing.T) {
	ca := newAuthority(t)
	plain := side("prod", "a", "shop.test", "/ Prefix")
	for _, test := range []struct {
		name string
		all  []string // the oldest first
		want []string
		told string // who is told, as "kind namespace/name"
	}{
		{
			name: "spec.tls alone claims nothing, be it older",
			all:  []string{tlsIngress("evil", "b", "mine.test", "/", "shop.test"), tlsIngress("prod", "a", "shop.test", "/", "shop.test")},
			want: []string{"443 shop.test prod"},
		},
		{
			name: "a host of TLS that no rule has", want: nil,
			all: []string{tlsIngress("evil", "b", "mine.test", "/", "shop.test")},
		},
		{
			name: "a longer path with a certificate", told: "Ingress evil/b, Ingress prod/a",
			all:  []string{tlsIngress("prod", "a", "shop.test", "/", "shop.test"), tlsIngress("evil", "b", "shop.test", "/b", "shop.test")},
			want: []string{"443 shop.test prod"},
		},
		{
			name: "a host without a certificate", told: "Ingress evil/b, Ingress prod/a", want: nil,
			all: []string{plain, tlsIngress("evil", "b", "shop.test", "/b", "shop.test")},
		},
		{
			name: "a host whose own certificate is broken", told: "Ingress evil/b, Ingress prod/a",
			all:  []string{strings.Replace(tlsIngress("prod", "a", "shop.test", "/", "shop.test"), "cert}", "none}", 1), tlsIngress("evil", "b", "shop.test", "/b", "shop.test")},
			want: []string{"443 shop.test refuses"},
		},
		{
			name: "a wildcard for a host of a rule", told: "Ingress evil/b, Ingress prod/a", want: nil,
			all: []string{plain, tlsIngress("evil", "b", "shop.test", "/b", "'*.test'")},
		},
		{
			name: "all hosts of the rules", told: "Ingress evil/b, Ingress prod/a", want: nil,
			all: []string{plain, tlsIngress("evil", "b", "shop.test", "/b", "")},
		},
		{
			name: "the default certificate", told: "Ingress evil/b, Ingress prod/a", want: nil,
			all: []string{side("prod", "a", "", "/ Prefix"), tlsIngress("evil", "b", "", "/b", "")},
		},
		{
			name: "another Ingress of the namespace that has the host", told: "Ingress evil/b, Ingress prod/a",
			all:  []string{plain, tlsIngress("evil", "b", "shop.test", "/b", "shop.test"), tlsIngress("prod", "c", "shop.test", "/c", "shop.test")},
			want: []string{"443 shop.test prod"},
		},
		{
			name: "a narrower host is its own thing", want: []string{"443 *.test prod", "443 shop.test evil"},
			all: []string{tlsIngress("prod", "a", "*.test", "/", "'*.test'"), tlsIngress("evil", "b", "shop.test", "/", "shop.test")},
		},
		{
			name: "a listener for a host of an Ingress", told: "Gateway evil/g, Ingress prod/a", want: []string{"443 shop.test prod"},
			all: []string{tlsIngress("prod", "a", "shop.test", "/", "shop.test"), tlsGateway("evil", "g", "shop.test", 443), tlsRoute("evil", "r", "evil/g", "shop.test")},
		},
		{
			name: "a listener for a host of an Ingress without TLS", told: "Gateway evil/g, Ingress prod/a", want: nil,
			all: []string{plain, tlsGateway("evil", "g", "shop.test", 443), tlsRoute("evil", "r", "evil/g", "shop.test")},
		},
		{
			name: "a listener at another port", told: "Gateway evil/g, Ingress prod/a", want: []string{"443 shop.test prod"},
			all: []string{tlsIngress("prod", "a", "shop.test", "/", "shop.test"), tlsGateway("evil", "g", "shop.test", 8443)},
		},
		{
			name: "a Route for a host of an Ingress", told: "HTTPRoute evil/r, Ingress prod/a", want: []string{"443 *.test evil *.test", "443 shop.test prod"},
			all: []string{tlsIngress("prod", "a", "shop.test", "/", "shop.test"), tlsGateway("evil", "g", "*.test", 443), tlsRoute("evil", "r", "evil/g", "shop.test")},
		},
		{
			name: "an Ingress for a host of a listener", told: "Ingress evil/b, Gateway prod/g", want: []string{"443 shop.test prod shop.test"},
			all: []string{tlsGateway("prod", "g", "shop.test", 443), tlsIngress("evil", "b", "shop.test", "/b", "shop.test")},
		},
		{
			name: "an Ingress for a host of a Route", told: "Ingress evil/b, HTTPRoute prod/r", want: []string{"443 *.test prod *.test", "443 shop.test prod *.test"},
			all: []string{tlsGateway("prod", "g", "*.test", 443), tlsRoute("prod", "r", "prod/g", "shop.test"), tlsIngress("evil", "b", "shop.test", "/b", "shop.test")},
		},
		{
			name: "a listener for a host of a Route", told: "Gateway evil/g, HTTPRoute prod/r", want: []string{"443 *.test prod *.test", "443 shop.test prod *.test"},
			all: []string{tlsGateway("prod", "g", "*.test", 443), tlsRoute("prod", "r", "prod/g", "shop.test"), tlsGateway("evil", "g", "shop.test", 443), tlsRoute("evil", "r", "evil/g", "shop.test")},
		},
		{
			name: "a wildcard listener between a Route and its own", want: []string{"443 * prod *", "443 *.test evil *.test", "443 shop.test prod *"},
			all: []string{tlsGateway("prod", "g", "", 443), tlsRoute("prod", "r", "prod/g", "shop.test"), tlsGateway("evil", "g", "*.test", 443)},
		},
		{
			name: "a Gateway that namespaces share", want: []string{"443 *.test shared *.test", "443 shop.test shared *.test"},
			all: []string{tlsGateway("shared", "g", "*.test", 443), tlsRoute("prod", "r", "shared/g", "shop.test"), tlsRoute("evil", "r", "shared/g", "shop.test")},
		},
		{
			name: "a Gateway that namespaces share, and an Ingress of its user", want: []string{"443 *.test shared *.test", "443 shop.test shared *.test"},
			all: []string{plain, tlsGateway("shared", "g", "*.test", 443), tlsRoute("prod", "r", "shared/g", "shop.test")},
		},
	} {
		snap := snapshotOf(t, append([]string{ourClass, cluster}, test.all...)...)
		for _, namespace := range []string{"prod", "evil", "shared"} {
			chain, key := ca.issue(t, "*.test")
			s := secret("cert", chain, key)
			s.Namespace, s.UID = namespace, types.UID("Secret/"+namespace)
			put(t, snap, s)
		}
		d := Translate(snap, Options{})
		assert.Equal(t, test.want, secured(d), test.name)
		for _, who := range strings.Split(test.told, ", ") {
			if kind, object, some := strings.Cut(who, " "); some {
				assert.Contains(t, strings.Join(problemsOf(d, kind, object), "\n"), "Conflict: ", "%s: %s", test.name, who)
			}
		}
	}
}

// Where Ingresses may be, no object of a namespace decides which protocol their ports have.
func TestThePortsOfIngressesKeepTheirProtocols(t *testing.T) {
	wrong := func(namespace string) []string {
		return []string{of(namespace, gatewayOf("g", `{name: a, port: 443, protocol: HTTP}`, `{name: b, port: 80, protocol: HTTPS, hostname: a.test}`))}
	}
	in := side("prod", "a", "shop.test", "/ Prefix")
	for _, all := range [][]string{append(wrong("evil"), in), {in, wrong("evil")[0]}, wrong("evil")} {
		d := Translate(snapshotOf(t, append([]string{ourClass, cluster}, all...)...), Options{})
		for _, s := range d.Config.Servers {
			assert.Equal(t, "80 shop.test", fmt.Sprintf("%d %s", s.Port, s.Host))
		}
		assert.Contains(t, strings.Join(problemsOf(d, "Gateway", "evil/g"), "\n"), "another protocol at an Ingress")
	}
}

// A Gateway whose listener has a narrower host gets the hosts of Routes that are younger.
func TestAYoungerGatewayTakesNoHostOfARoute(t *testing.T) {
	edge := gatewayOf("edge", `{name: http, port: 80, protocol: HTTP}`)
	route := routeOf("r", toEdge+"\n  hostnames: [shop.test]", toWeb)
	narrow := of("evil", gatewayOf("edge", `{name: http, port: 80, protocol: HTTP, hostname: "*.test"}`))
	d := Translate(snapshotOf(t, cluster, edge, route, narrow), Options{})
	assert.Equal(t, []string{"80 shop.test Prefix / → prod.web.80*1"}, served(d.Config))
	d = Translate(snapshotOf(t, cluster, edge, narrow, route), Options{})
	assert.Empty(t, served(d.Config))
	assert.Equal(t, []string{`Conflict: host "shop.test": Gateway evil/edge, which is older, has it with a listener of its own`}, problemsOf(d, "HTTPRoute", "prod/r"))
	assert.Equal(t, []string{`Conflict: host "shop.test": an HTTPRoute of namespace prod, which is younger, claims it`}, problemsOf(d, "Gateway", "evil/edge"))
}
