package translate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/fleet"
)

// These tests attack the machine that the gateway runs on.

func TestNoEndpointIsOnThisMachine(t *testing.T) {
	var endpoints []string
	for _, address := range []string{
		"127.0.0.1", "127.200.3.4", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "::ffff:0.0.0.0", "169.254.169.254", "169.254.0.9", "::ffff:169.254.169.254",
		"fe80::1", "febf::1", "224.0.0.1", "ff02::1", "255.255.255.255", "192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7", "2001:0db8:0::0007", "fe80::1%eth0", "localhost",
		"10.0.0.1", "192.0.2.8", "2001:db8::8", "fd00::1",
	} {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%q]}", address), fmt.Sprintf(
			"{addresses: [%q, 10.0.0.9], conditions: {ready: false, serving: true, terminating: true}}", address))
	}
	in := ingressOf("in", "rules:\n"+rule("a.example.com", to("/", "Prefix", "web")))
	home := snapshotOf(t, ourClass, webService, slice("a", endpoints...), in)
	away := snapshotOf(t, ourClass, webService, in)
	remote := []fleet.Object[*discoveryv1.EndpointSlice]{{Cluster: "other", Object: home.Slices[0]}}
	machine := Machine{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}}
	want := []string{"10.0.0.1:8080", "192.0.2.8:8080", "[2001:db8::8]:8080", "[fd00::1]:8080"}
	for _, test := range []struct {
		snap *Snapshot
		o    Options
	}{{home, Options{Machine: machine}}, {away, Options{Machine: machine, Remote: remote}}} {
		var follow Endpoints
		assert.Equal(t, want, Translate(test.snap, test.o).Config.Upstreams["prod.web.80"])
		got, err := follow.Of(test.snap, test.o, []string{"prod.web.80"})
		require.NoError(t, err)
		assert.Equal(t, want, got["prod.web.80"])
	}
	demonstration := Options{Endpoint: func(address string) string { return strings.Replace(address, "10.", "127.", 1) }}
	assert.Contains(t, Translate(home, demonstration).Config.Upstreams["prod.web.80"], "127.0.0.1:8080")
}

func TestWhoUsesEndpointsThatAreLeftOutIsTold(t *testing.T) {
	local := func(n int, port string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("{addresses: [127.0.%s.%d]}", port, i))
		}
		return all
	}
	// Five Services: the first has many endpoints on the machine, of which one appears twice.
	objects := []string{ourClass, cluster, gatewayOf("edge", `{name: http, port: 80, protocol: HTTP}`),
		slice("none", "{addresses: [10.0.0.1]}", "{addresses: [127.0.0.1], conditions: {ready: false}}")}
	var paths []string
	for i, n := range []int{100, 3, 1, 1} {
		service := fmt.Sprint("local-", i)
		objects = append(objects, strings.ReplaceAll(webService, "name: web", "name: "+service),
			strings.ReplaceAll(slice(service, append(local(n, fmt.Sprint(i)), fmt.Sprintf("{addresses: [127.0.%d.0]}", i), "{addresses: [10.0.0.1]}")...), "service-name: web", "service-name: "+service))
		paths = append(paths, to(fmt.Sprint("/", i), "Prefix", service))
	}
	objects = append(objects, ingressOf("many", "rules:\n"+rule("a.example.com", paths...)), ingressOf("none", "rules:\n"+rule("b.example.com", to("/", "Prefix", "web"))),
		routeOf("route", toEdge, `backendRefs: [{name: local-2, port: 80}, {name: web, port: 80}]`))
	snap := snapshotOf(t, objects...)
	const left = "EndpointsLeftOut: endpoints of prod.local-%d.80 (namespace.Service.port) are left out, since they are on the gateway's machine: %s"
	for _, o := range []Options{{}, {ReportsOnly: true}} {
		d := Translate(snap, o)
		assert.Equal(t, []string{
			fmt.Sprintf(left, 0, "127.0.0.0, 127.0.0.1, 127.0.0.10 and 97 more"), fmt.Sprintf(left, 1, "127.0.1.0, 127.0.1.1, 127.0.1.2"), fmt.Sprintf(left, 2, "127.0.2.0"),
		}, problemsOf(d, "Ingress", "prod/many"), "of a few Services, and of each a few")
		assert.Equal(t, []string{fmt.Sprintf(left, 2, "127.0.2.0")}, problemsOf(d, "HTTPRoute", "prod/route"))
		assert.Empty(t, problemsOf(d, "Ingress", "prod/none"))
	}
	assert.Empty(t, Translate(snap, Options{ReportsOnly: true}).Config.Upstreams)
	demonstration := func(address string) string { return address }
	assert.Empty(t, problemsOf(Translate(snap, Options{Endpoint: demonstration}), "Ingress", "prod/many"))

	o := Options{Machine: Machine{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7")}}}
	for address, want := range map[string]bool{"127.0.0.1": true, "fe80::1%eth0": true, "192.0.2.7": true, "10.0.0.1": false, "x": false} {
		s := &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{}, {Addresses: []string{"10.0.0.2"}}, {Addresses: []string{address}}}}
		assert.Equal(t, want, o.LeavesOut(s), address)
	}
	assert.False(t, o.LeavesOut(nil))
}

func TestAListenerHasNoPortOfTheGatewayAndNoneThatIsTaken(t *testing.T) {
	const taken = "nginx cannot listen at 0.0.0.0:9000: address already in use"
	snap := snapshotOf(t, cluster, gatewayOf("edge",
		`{name: page, port: 8099, protocol: HTTP, hostname: page.example.com}`, `{name: taken, port: 9000, protocol: HTTP}`,
		`{name: mapped, port: 99, protocol: HTTP}`, `{name: good, port: 80, protocol: HTTP}`), gatewayOf("second", `{name: good, port: 80, protocol: HTTP, hostname: b.example.com}`),
		routeOf("route", toEdge, `backendRefs: [{name: web, port: 80}]`))
	port := func(named int) int {
		if named == 99 {
			return 8099
		}
		return named
	}
	d := Translate(snap, Options{Port: port, Machine: Machine{Ports: []int{8099}, Taken: []nginx.Taken{{Port: 9000, Message: taken}}}})
	listeners := statusOf[*gatewayv1.GatewayStatus](t, d, "Gateway", "prod/edge").Listeners
	for i, want := range []string{
		"port 8099 is one of the gateway itself", taken, "port 99 is one of the gateway itself",
	} {
		assert.Equal(t, []string{"Accepted False PortUnavailable", "Programmed False Invalid", "ResolvedRefs True ResolvedRefs", "Conflicted False NoConflicts"}, said(listeners[i].Conditions))
		assert.Equal(t, want, listeners[i].Conditions[0].Message)
	}
	assert.Equal(t, "Programmed True Programmed", said(listeners[3].Conditions)[1])
	assert.Equal(t, []string{
		`PortUnavailable: listener "mapped": port 99 is one of the gateway itself`,
		`PortUnavailable: listener "page": port 8099 is one of the gateway itself`, `PortUnavailable: listener "taken": ` + taken,
	}, problemsOf(d, "Gateway", "prod/edge"))
	assert.Empty(t, problemsOf(d, "Gateway", "prod/second"))
	for _, s := range d.Config.Servers {
		assert.Equal(t, 80, s.Port)
	}
	assert.Len(t, d.Config.Servers, 2)
}

func TestWhatIsServedAtAPortThatIsTakenIsLeftOutAlone(t *testing.T) {
	chain, key := newAuthority(t).issue(t, "a.example.com")
	snap := snapshotOf(t, ourClass, webService, ingressOf("in", "tls: [{hosts: [a.example.com], secretName: cert}]\nrules:\n"+rule("a.example.com", to("/", "Prefix", "web"))))
	s := secret("cert", chain, key)
	snap.Secrets = append(snap.Secrets, s)
	at := netip.MustParseAddr("10.1.1.1")
	d := Translate(snap, Options{Address: at, Machine: Machine{Taken: []nginx.Taken{
		{Address: "10.1.1.1", Port: 443, Message: "it is taken"}, {Address: "10.1.1.2", Port: 80}, {Port: 80},
	}}})
	require.Len(t, d.Config.Servers, 1)
	assert.Equal(t, 80, d.Config.Servers[0].Port)
	assert.Equal(t, []string{"PortUnavailable: it is taken"}, problemsOf(d, "Ingress", "prod/in"))
}
