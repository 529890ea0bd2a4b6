package translate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// cluster is what is there before the Gateways of a test: a class, namespaces, and a Service.
const cluster = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kates, generation: 3}
spec: {controllerName: gateway.example.com/kates}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: other}
spec: {controllerName: example.com/other}
---
apiVersion: v1
kind: Namespace
metadata: {name: prod, labels: {stage: live}}
---
apiVersion: v1
kind: Namespace
metadata: {name: test, labels: {stage: trial}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: prod}
spec:
  ports:
  - {name: http, port: 80}
  - {name: h2c, port: 81, appProtocol: kubernetes.io/h2c}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, namespace: prod, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports:
- {name: http, port: 8080}
- {name: h2c, port: 8081}
endpoints:
- {addresses: [10.0.0.1]}
`

// gatewayOf is a Gateway in namespace prod with these listeners, each one a line of YAML.
func gatewayOf(name string, listeners ...string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %s, namespace: prod, generation: 5}
spec:
  gatewayClassName: kates
  listeners:
  - %s
`, name, strings.Join(listeners, "\n  - "))
}

// said are conditions as "type status reason".
func said(conditions []metav1.Condition) (all []string) {
	for _, c := range conditions {
		all = append(all, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	return all
}

// statusOf is the status that an object should have.
func statusOf[T any](t *testing.T, d *Desired, kind, namespacedName string) T {
	t.Helper()
	for _, r := range d.Reports {
		if sourceOf(r.Object).Kind == kind && strings.TrimPrefix(name(r.Object).String(), "/") == namespacedName {
			status, ok := r.Status.(T)
			require.Truef(t, ok, "%T", r.Status)
			return status
		}
	}
	require.Failf(t, "no report", "%s %s", kind, namespacedName)
	panic("unreachable")
}

func TestAClassIsAcceptedIfItIsOursAndHasNoParameters(t *testing.T) {
	d := Translate(snapshotOf(t, cluster, `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: tuned}
spec:
  controllerName: gateway.example.com/kates
  parametersRef: {group: "", kind: ConfigMap, name: tuning}
`), Options{})
	status := statusOf[*gatewayv1.GatewayClassStatus](t, d, "GatewayClass", "kates")
	assert.Equal(t, []string{"Accepted True Accepted"}, said(status.Conditions))
	assert.EqualValues(t, 3, status.Conditions[0].ObservedGeneration)
	assert.IsIncreasing(t, features)
	assert.Len(t, status.SupportedFeatures, len(features))
	status = statusOf[*gatewayv1.GatewayClassStatus](t, d, "GatewayClass", "tuned")
	assert.Equal(t, []string{"Accepted False InvalidParameters"}, said(status.Conditions))
	assert.Len(t, d.Reports, 2, "the class of another controller is left alone")
}

func TestAGatewayAndItsListenersSayWhatIsServed(t *testing.T) {
	chain, key := newAuthority(t).issue(t, "shop.example.com")
	const http, https = `{name: http, port: 80, protocol: HTTP}`, `{name: https, port: 443, protocol: HTTPS, hostname: shop.example.com, tls: {certificateRefs: [{name: %s}]}}`
	good := []string{"Accepted True Accepted", "Programmed True Programmed"}
	fine := "Accepted True Accepted, Programmed True Programmed, ResolvedRefs True ResolvedRefs, Conflicted False NoConflicts"
	none := []string{"Accepted False ListenersNotValid", "Programmed False Invalid"}
	unserved := []string{"Accepted True Accepted", "Programmed False Invalid"}
	partly := []string{"Accepted True ListenersNotValid", "Programmed True Programmed"}
	for _, test := range []struct {
		name, extra string
		listeners   []string
		gateway     []string
		want        []string
		kinds       []int
	}{
		{name: "HTTP", listeners: []string{http}, gateway: good, want: []string{fine}},
		{name: "HTTPS", listeners: []string{fmt.Sprintf(https, "shop")}, gateway: good, want: []string{fine}},
		{
			name: "no Secret", listeners: []string{fmt.Sprintf(https, "none")}, gateway: unserved,
			want: []string{"Accepted True Accepted, Programmed False Invalid, ResolvedRefs False InvalidCertificateRef, Conflicted False NoConflicts"},
		},
		{
			name: "a broken Secret beside a listener that is good", listeners: []string{http, fmt.Sprintf(https, "broken")}, gateway: good,
			want: []string{fine, "Accepted True Accepted, Programmed False Invalid, ResolvedRefs False InvalidCertificateRef, Conflicted False NoConflicts"},
		},
		{
			name: "no certificate named", listeners: []string{`{name: https, port: 443, protocol: HTTPS}`}, gateway: unserved,
			want: []string{"Accepted True Accepted, Programmed False Invalid, ResolvedRefs False InvalidCertificateRef, Conflicted False NoConflicts"},
		},
		{
			name: "a certificate in a ConfigMap", gateway: unserved,
			listeners: []string{`{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{kind: ConfigMap, name: shop}]}}`},
			want:      []string{"Accepted True Accepted, Programmed False Invalid, ResolvedRefs False InvalidCertificateRef, Conflicted False NoConflicts"},
		},
		{
			name: "a Secret of another namespace", gateway: unserved,
			listeners: []string{`{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{namespace: test, name: shop}]}}`},
			want:      []string{"Accepted True Accepted, Programmed False Invalid, ResolvedRefs False RefNotPermitted, Conflicted False NoConflicts"},
		},
		{
			name: "a Secret of another namespace, with a grant", gateway: good, extra: grant("test", "Gateway", "prod", "Secret", "shop"),
			listeners: []string{`{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{namespace: test, name: shop}]}}`},
			want:      []string{fine},
		},
		{
			name: "a grant for another Secret", gateway: unserved, extra: grant("test", "Gateway", "prod", "Secret", "other"),
			listeners: []string{`{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{namespace: test, name: shop}]}}`},
			want:      []string{"Accepted True Accepted, Programmed False Invalid, ResolvedRefs False RefNotPermitted, Conflicted False NoConflicts"},
		},
		{
			name: "passthrough", gateway: none,
			listeners: []string{`{name: https, port: 443, protocol: HTTPS, tls: {mode: Passthrough, certificateRefs: [{name: shop}]}}`},
			want:      []string{"Accepted False UnsupportedValue, Programmed False Invalid, ResolvedRefs True ResolvedRefs, Conflicted False NoConflicts"},
		},
		{
			name: "another protocol", listeners: []string{`{name: udp, port: 53, protocol: UDP}`}, gateway: none, kinds: []int{0},
			want: []string{"Accepted False UnsupportedProtocol, Programmed False Invalid, ResolvedRefs True ResolvedRefs, Conflicted False NoConflicts"},
		},
		{
			name: "another protocol beside HTTP", listeners: []string{http, `{name: udp, port: 53, protocol: UDP}`}, gateway: partly, kinds: []int{1, 0},
			want: []string{fine, "Accepted False UnsupportedProtocol, Programmed False Invalid, ResolvedRefs True ResolvedRefs, Conflicted False NoConflicts"},
		},
		{
			name: "a hostname that is none", listeners: []string{`{name: http, port: 80, protocol: HTTP, hostname: "a;b"}`}, gateway: none,
			want: []string{"Accepted False UnsupportedValue, Programmed False Invalid, ResolvedRefs True ResolvedRefs, Conflicted False NoConflicts"},
		},
		{
			name: "another kind of Route", gateway: unserved, kinds: []int{0},
			listeners: []string{`{name: http, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: TLSRoute}]}}`},
			want:      []string{"Accepted True Accepted, Programmed False Invalid, ResolvedRefs False InvalidRouteKinds, Conflicted False NoConflicts"},
		},
		{
			name: "another kind of Route, too", gateway: good, kinds: []int{1},
			listeners: []string{`{name: http, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: TLSRoute}, {kind: HTTPRoute}]}}`},
			want:      []string{"Accepted True Accepted, Programmed True Programmed, ResolvedRefs False InvalidRouteKinds, Conflicted False NoConflicts"},
		},
		{
			name: "one host twice", gateway: partly, listeners: []string{
				`{name: a, port: 80, protocol: HTTP, hostname: a.example.com}`, `{name: b, port: 80, protocol: HTTP, hostname: a.example.com}`, `{name: c, port: 80, protocol: HTTP}`,
			},
			want: []string{
				"Accepted False HostnameConflict, Programmed False Invalid, ResolvedRefs True ResolvedRefs, Conflicted True HostnameConflict",
				"Accepted False HostnameConflict, Programmed False Invalid, ResolvedRefs True ResolvedRefs, Conflicted True HostnameConflict", fine,
			},
		},
		{
			name: "one port with two protocols", listeners: []string{`{name: a, port: 443, protocol: HTTP}`, fmt.Sprintf(https, "shop")}, gateway: none,
			want: []string{
				"Accepted False ProtocolConflict, Programmed False Invalid, ResolvedRefs True ResolvedRefs, Conflicted True ProtocolConflict",
				"Accepted False ProtocolConflict, Programmed False Invalid, ResolvedRefs True ResolvedRefs, Conflicted True ProtocolConflict",
			},
		},
		{
			name: "hosts of TLS that overlap", gateway: good, listeners: []string{
				`{name: a, port: 443, protocol: HTTPS, hostname: "*.example.com", tls: {certificateRefs: [{name: shop}]}}`, fmt.Sprintf(https, "shop"),
			},
			want: []string{fine + ", OverlappingTLSConfig True OverlappingHostnames", fine + ", OverlappingTLSConfig True OverlappingHostnames"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			snap := snapshotOf(t, cluster, gatewayOf("edge", test.listeners...)+test.extra)
			put(t, snap, secret("shop", chain, key))
			put(t, snap, secret("broken", chain, nil))
			away := secret("shop", chain, key)
			away.Namespace = "test"
			put(t, snap, away)
			status := statusOf[*gatewayv1.GatewayStatus](t, Translate(snap, Options{}), "Gateway", "prod/edge")
			assert.Equal(t, test.gateway, said(status.Conditions))
			var all []string
			for _, l := range status.Listeners {
				all = append(all, strings.Join(said(l.Conditions), ", "))
				for _, c := range l.Conditions {
					assert.EqualValues(t, 5, c.ObservedGeneration)
				}
				assert.NotNil(t, l.SupportedKinds, "the API has an empty list, not null")
			}
			assert.Equal(t, test.want, all)
			for i, want := range test.kinds {
				assert.Len(t, status.Listeners[i].SupportedKinds, want)
			}
		})
	}
}

func grant(namespace, from, fromNamespace, to, name string) string {
	return fmt.Sprintf(`
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: grant, namespace: %s}
spec:
  from: [{group: gateway.networking.k8s.io, kind: %s, namespace: %s}]
  to: [{group: "", kind: %s, name: %s}]
`, namespace, from, fromNamespace, to, name)
}

func TestClientsWhoseCertificatesCannotBeCheckedAreNotServed(t *testing.T) {
	chain, key := newAuthority(t).issue(t, "shop.example.com")
	snap := snapshotOf(t, cluster, gatewayOf("edge", `{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: shop}]}}`,
		`{name: free, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: shop}]}}`)+`
  tls:
    frontend:
      default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}
      perPort: [{port: 444, tls: {}}]
`)
	put(t, snap, secret("shop", chain, key))
	d := Translate(snap, Options{})
	status := statusOf[*gatewayv1.GatewayStatus](t, d, "Gateway", "prod/edge")
	assert.Equal(t, "Accepted False UnsupportedValue", said(status.Listeners[0].Conditions)[0])
	assert.Equal(t, "Accepted True Accepted", said(status.Listeners[1].Conditions)[0])
	require.Len(t, d.Config.Servers, 1)
	assert.Equal(t, 444, d.Config.Servers[0].Port)
}

func TestAddressesOfGateways(t *testing.T) {
	pool := []netip.Addr{netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	const ok = "Programmed True Programmed"
	for _, test := range []struct {
		name     string
		o        Options
		gateways []string // the rest of each one's manifest, the oldest first
		want     []string // of each, its Programmed condition and its addresses
		listen   []string
	}{
		{name: "the lowest free one, the oldest first", o: Options{Addresses: pool}, gateways: []string{"", ""}, want: []string{ok + " 10.0.0.1", ok + " 10.0.0.2"}, listen: []string{"10.0.0.1", "10.0.0.2"}},
		{name: "a Gateway keeps what it has", o: Options{Addresses: pool}, gateways: []string{"", "status: {addresses: [{value: 10.0.0.1}]}"}, want: []string{ok + " 10.0.0.2", ok + " 10.0.0.1"}},
		{name: "of two that have one, the older keeps it", o: Options{Addresses: pool}, gateways: []string{"status: {addresses: [{value: 10.0.0.3}]}", "status: {addresses: [{value: 10.0.0.3}]}"}, want: []string{ok + " 10.0.0.3", ok + " 10.0.0.1"}},
		{name: "what is no longer of the pool is given up", o: Options{Addresses: pool}, gateways: []string{"status: {addresses: [{value: 10.9.9.9}]}"}, want: []string{ok + " 10.0.0.1"}},
		{name: "none left", o: Options{Addresses: pool[:1]}, gateways: []string{"", ""}, want: []string{ok + " 10.0.0.3", "Programmed False AddressNotAssigned"}, listen: []string{"10.0.0.3"}},
		{name: "the one that is asked for", o: Options{Addresses: pool}, gateways: []string{"  addresses: [{value: 10.0.0.2}]"}, want: []string{ok + " 10.0.0.2"}},
		{name: "any one", o: Options{Addresses: pool}, gateways: []string{"  addresses: [{type: IPAddress}]"}, want: []string{ok + " 10.0.0.1"}},
		{name: "one that is not ours", o: Options{Addresses: pool}, gateways: []string{"  addresses: [{value: 10.9.9.9}]"}, want: []string{"Programmed False AddressNotUsable"}},
		{name: "one that is not ours, and one that is", o: Options{Addresses: pool}, gateways: []string{"  addresses: [{value: 10.9.9.9}, {value: 10.0.0.2}]"}, want: []string{"Programmed False AddressNotUsable 10.0.0.2"}, listen: []string{"10.0.0.2"}},
		{name: "one that an older Gateway has", o: Options{Addresses: pool}, gateways: []string{"status: {addresses: [{value: 10.0.0.2}]}", "  addresses: [{value: 10.0.0.2}]"}, want: []string{ok + " 10.0.0.2", "Programmed False AddressNotUsable"}},
		{name: "a younger one asks for the only one", o: Options{Addresses: pool[:1]}, gateways: []string{"", "  addresses: [{value: 10.0.0.3}]"}, want: []string{ok + " 10.0.0.3", "Programmed False AddressNotUsable"}},
		{name: "a younger one asks for the lowest", o: Options{Addresses: pool}, gateways: []string{"", "  addresses: [{value: 10.0.0.1}]"}, want: []string{ok + " 10.0.0.1", "Programmed False AddressNotUsable"}},
		{name: "an older one asks for what a younger one has", o: Options{Addresses: pool}, gateways: []string{"  addresses: [{value: 10.0.0.1}]", "status: {addresses: [{value: 10.0.0.1}]}"}, want: []string{"Programmed False AddressNotUsable", ok + " 10.0.0.1"}},
		{name: "a younger one has what it asks for", o: Options{Addresses: pool}, gateways: []string{"", "  addresses: [{value: 10.0.0.1}]\nstatus: {addresses: [{value: 10.0.0.1}]}"}, want: []string{ok + " 10.0.0.2", ok + " 10.0.0.1"}},
		{name: "one that asks for another gives up what it has", o: Options{Addresses: pool}, gateways: []string{"  addresses: [{value: 10.0.0.2}]\nstatus: {addresses: [{value: 10.0.0.1}]}", ""}, want: []string{ok + " 10.0.0.2", ok + " 10.0.0.1"}},
		{name: "no type of ours", o: Options{Addresses: pool}, gateways: []string{"  addresses: [{type: example.com/x, value: any}]", ""}, want: []string{"Programmed False Invalid", ok + " 10.0.0.1"}},
		{name: "no pool: all share what is published", o: Options{Published: []string{"192.0.2.1", "lb.example.com"}}, gateways: []string{""}, want: []string{ok + " 192.0.2.1 lb.example.com"}, listen: []string{""}},
		{name: "no pool: one that is published", o: Options{Published: []string{"192.0.2.1", "192.0.2.2"}}, gateways: []string{"  addresses: [{value: 192.0.2.2}]"}, want: []string{ok + " 192.0.2.2"}},
		{name: "no pool: another one", o: Options{Published: []string{"192.0.2.1"}}, gateways: []string{"  addresses: [{value: 192.0.2.2}]"}, want: []string{"Programmed False AddressNotUsable"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := []string{cluster}
			for i, rest := range test.gateways {
				all = append(all, gatewayOf(fmt.Sprintf("edge-%d", 9-i), `{name: http, port: 80, protocol: HTTP}`)+rest)
			}
			d := Translate(snapshotOf(t, all...), test.o)
			var got, listen []string
			for i := range test.gateways {
				status := statusOf[*gatewayv1.GatewayStatus](t, d, "Gateway", fmt.Sprintf("prod/edge-%d", 9-i))
				text := said(status.Conditions)[1]
				for _, a := range status.Addresses {
					text += " " + a.Value
				}
				got = append(got, text)
			}
			for _, s := range d.Config.Servers {
				listen = append(listen, s.Address)
			}
			assert.Equal(t, test.want, got)
			if test.listen != nil {
				assert.Equal(t, test.listen, listen)
			}
		})
	}
}

func TestOfTwoGatewaysAtOneAddressTheOlderKeepsItsListeners(t *testing.T) {
	d := Translate(snapshotOf(t, cluster, gatewayOf("older", `{name: http, port: 80, protocol: HTTP, hostname: a.example.com}`),
		gatewayOf("newer", `{name: same, port: 80, protocol: HTTP, hostname: a.example.com}`, `{name: free, port: 80, protocol: HTTP}`),
		gatewayOf("newest", `{name: tls, port: 80, protocol: HTTPS}`)), Options{})
	conflicted := func(name string, listener int) metav1.Condition {
		return statusOf[*gatewayv1.GatewayStatus](t, d, "Gateway", "prod/"+name).Listeners[listener].Conditions[3]
	}
	assert.Equal(t, "NoConflicts", conflicted("older", 0).Reason)
	assert.Equal(t, "HostnameConflict", conflicted("newer", 0).Reason)
	assert.Contains(t, conflicted("newer", 0).Message, `listener "http" of Gateway prod/older`)
	assert.Equal(t, "NoConflicts", conflicted("newer", 1).Reason)
	assert.Equal(t, "ProtocolConflict", conflicted("newest", 0).Reason)
	require.Len(t, d.Config.Servers, 2)
	assert.Equal(t, "newer", d.Config.Servers[0].Source.Name)
	assert.Equal(t, "older", d.Config.Servers[1].Source.Name)
}
