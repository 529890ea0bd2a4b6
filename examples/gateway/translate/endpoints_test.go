package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kates-go/kates/fleet"
)

const webService = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: prod}
spec:
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: admin, port: 9000, protocol: TCP}
  - {name: dns, port: 53, protocol: UDP}
`

// slice is an EndpointSlice of the Service web: each endpoint is a line of YAML.
func slice(name string, endpoints ...string) string {
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s, namespace: prod, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports:
- {name: admin, port: 9001, protocol: TCP}
- {name: http, port: 8080, protocol: TCP}
endpoints:
- %s
`, name, strings.Join(endpoints, "\n- "))
}

// asking translates a snapshot with an Ingress for a Service.
func asking(service string, port backendPort, o Options, snap *Snapshot) *Desired {
	in := &networkingv1.Ingress{}
	in.APIVersion, in.Kind, in.Namespace, in.Name, in.UID = "networking.k8s.io/v1", "Ingress", "prod", "in", "in"
	in.Spec.IngressClassName, in.Spec.DefaultBackend = new("ours"), backendOf(service)
	in.Spec.DefaultBackend.Service.Port = networkingv1.ServiceBackendPort{Name: port.name, Number: port.number}
	snap.Ingresses = append(snap.Ingresses, in)
	return Translate(snap, o)
}

func TestEndpointsOfAServicePort(t *testing.T) {
	zones := func(zone string) Options { return Options{Zone: zone} }
	for _, test := range []struct {
		name   string
		port   backendPort
		o      Options
		slices []string
		want   []string
	}{
		{name: "none", port: backendPort{number: 80}},
		{
			name: "of all slices, sorted, each once", port: backendPort{number: 80},
			slices: []string{slice("b", `{addresses: [10.0.0.9]}`, `{addresses: [10.0.0.1]}`), slice("a", `{addresses: [10.0.0.1, 10.0.0.200]}`)},
			want:   []string{"10.0.0.1:8080", "10.0.0.9:8080"},
		},
		{
			name: "the port by its name", port: backendPort{name: "admin"},
			slices: []string{slice("a", `{addresses: [10.0.0.1]}`)}, want: []string{"10.0.0.1:9001"},
		},
		{
			name: "only the ready ones, if there is one", port: backendPort{number: 80},
			slices: []string{slice("a", `{addresses: [10.0.0.1], conditions: {ready: true}}`,
				`{addresses: [10.0.0.2], conditions: {ready: false, serving: true, terminating: true}}`,
				`{addresses: [10.0.0.3], conditions: {ready: false}}`)},
			want: []string{"10.0.0.1:8080"},
		},
		{
			name: "those that terminate and serve, if none is ready", port: backendPort{number: 80},
			slices: []string{slice("a", `{addresses: [10.0.0.1], conditions: {ready: false, serving: false, terminating: true}}`,
				`{addresses: [10.0.0.2], conditions: {ready: false, serving: true, terminating: true}}`,
				`{addresses: [10.0.0.3], conditions: {ready: false, serving: true}}`)},
			want: []string{"10.0.0.2:8080"},
		},
		{
			name: "of the zone", port: backendPort{number: 80}, o: zones("a"),
			slices: []string{slice("a", `{addresses: [10.0.0.1], hints: {forZones: [{name: a}]}}`, `{addresses: [10.0.0.2], hints: {forZones: [{name: b}]}}`)},
			want:   []string{"10.0.0.1:8080"},
		},
		{
			name: "of all zones, if the replica knows none", port: backendPort{number: 80},
			slices: []string{slice("a", `{addresses: [10.0.0.1], hints: {forZones: [{name: a}]}}`, `{addresses: [10.0.0.2], hints: {forZones: [{name: b}]}}`)},
			want:   []string{"10.0.0.1:8080", "10.0.0.2:8080"},
		},
		{
			name: "of all zones, if one has no hint", port: backendPort{number: 80}, o: zones("a"),
			slices: []string{slice("a", `{addresses: [10.0.0.1], hints: {forZones: [{name: a}]}}`, `{addresses: [10.0.0.2]}`)},
			want:   []string{"10.0.0.1:8080", "10.0.0.2:8080"},
		},
		{
			name: "of all zones, if none is for this one", port: backendPort{number: 80}, o: zones("c"),
			slices: []string{slice("a", `{addresses: [10.0.0.1], hints: {forZones: [{name: a}]}}`, `{addresses: [10.0.0.2], hints: {forZones: [{name: b}]}}`)},
			want:   []string{"10.0.0.1:8080", "10.0.0.2:8080"},
		},
		{
			name: "one that is not ready needs no hint", port: backendPort{number: 80}, o: zones("a"),
			slices: []string{slice("a", `{addresses: [10.0.0.1], hints: {forZones: [{name: a}]}}`, `{addresses: [10.0.0.2], conditions: {ready: false}}`,
				`{addresses: [10.0.0.3], hints: {forZones: [{name: b}]}}`)},
			want: []string{"10.0.0.1:8080"},
		},
		{
			name: "of both families", port: backendPort{number: 80},
			slices: []string{slice("a", `{addresses: [10.0.0.1]}`), strings.Replace(slice("b", `{addresses: ["2001:db8::1"]}`), "IPv4", "IPv6", 1)},
			want:   []string{"10.0.0.1:8080", "[2001:db8::1]:8080"},
		},
		{
			name: "not what is no address", port: backendPort{number: 80},
			slices: []string{slice("a", `{addresses: ["10.0.0.1;}"]}`, `{addresses: ["fe80::1%eth0;"]}`, `{addresses: []}`, `{addresses: [10.0.0.2]}`),
				strings.Replace(slice("b", `{addresses: [10.0.0.7]}`), "IPv4", "FQDN", 1)},
			want: []string{"10.0.0.2:8080"},
		},
		{
			name: "at other addresses", port: backendPort{number: 80},
			o:      Options{Endpoint: func(a string) string { return "127" + strings.TrimPrefix(a, "10") }},
			slices: []string{slice("a", `{addresses: [10.0.0.1]}`)}, want: []string{"127.0.0.1:8080"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := asking("web", test.port, test.o, snapshotOf(t, append(test.slices, ourClass, webService)...))
			require.Len(t, d.Config.Upstreams, 1)
			for id, got := range d.Config.Upstreams {
				assert.Contains(t, []string{"prod.web.80", "prod.web.9000"}, id)
				assert.Equal(t, test.want, got)
			}
		})
	}
}

func TestEndpointsOfOtherClustersAreMergedWhateverTheirZone(t *testing.T) {
	remote := func(endpoints ...string) Options {
		return Options{Zone: "a", Remote: []fleet.Object[*discoveryv1.EndpointSlice]{{Cluster: "other", Object: snapshotOf(t, slice("r", endpoints...)).Slices[0]}}}
	}
	home := slice("a", `{addresses: [10.0.0.1], hints: {forZones: [{name: a}]}}`, `{addresses: [10.0.0.2], hints: {forZones: [{name: b}]}}`)
	for _, test := range []struct {
		name, home string
		o          Options
		want       []string
	}{
		{"beside those of the zone", home, remote(`{addresses: [10.9.0.1], hints: {forZones: [{name: z}]}}`), []string{"10.0.0.1:8080", "10.9.0.1:8080"}},
		{"in place of those that terminate", slice("a", `{addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}}`),
			remote(`{addresses: [10.9.0.1]}`), []string{"10.9.0.1:8080"}},
		{"those that terminate in place of none", slice("a", `{addresses: [10.0.0.1], conditions: {ready: false}}`),
			remote(`{addresses: [10.9.0.1], conditions: {ready: false, serving: true, terminating: true}}`), []string{"10.9.0.1:8080"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := asking("web", backendPort{number: 80}, test.o, snapshotOf(t, ourClass, webService, test.home))
			assert.Equal(t, test.want, d.Config.Upstreams["prod.web.80"])
		})
	}
}

func TestAnUpstreamThatIsNoneSaysWhy(t *testing.T) {
	snap := *snapshotOf(t, ourClass, webService, `
apiVersion: v1
kind: Service
metadata: {name: elsewhere, namespace: prod}
spec: {type: ExternalName, externalName: example.com, ports: [{port: 80}]}
`)
	for _, test := range []struct {
		service string
		port    backendPort
		want    string
	}{
		{"none", backendPort{number: 80}, `there is no Service prod/none`},
		{"elsewhere", backendPort{number: 80}, `the Service prod/elsewhere is of type ExternalName, which is not served`},
		{"web", backendPort{number: 81}, `the Service prod/web has no port 81`},
		{"web", backendPort{name: "https"}, `the Service prod/web has no port "https"`},
		{"web", backendPort{number: 53}, `port 53 of Service prod/web is for UDP, not TCP`},
	} {
		with := snap
		d := asking(test.service, test.port, Options{}, &with)
		assert.Equal(t, []string{`InvalidBackend: host "*", path /: ` + test.want}, problemsOf(d, "Ingress", "prod/in"))
		assert.Empty(t, d.Config.Upstreams)
	}
}
