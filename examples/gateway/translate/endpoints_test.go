package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
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
			tr := newTranslation(snapshotOf(t, append(test.slices, webService)...), test.o)
			id, err := tr.upstream("prod", "web", test.port)
			require.NoError(t, err)
			assert.Contains(t, []string{"prod.web.80", "prod.web.9000"}, id)
			assert.Equal(t, test.want, tr.config.Upstreams[id])
		})
	}
}

func TestEndpointsOfOtherClustersAreMergedWhateverTheirZone(t *testing.T) {
	web := types.NamespacedName{Namespace: "prod", Name: "web"}
	remote := func(endpoints ...string) Options {
		return Options{Zone: "a", Remote: map[types.NamespacedName][]*discoveryv1.EndpointSlice{web: snapshotOf(t, slice("r", endpoints...)).Slices}}
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
			tr := newTranslation(snapshotOf(t, webService, test.home), test.o)
			id, err := tr.upstream("prod", "web", backendPort{number: 80})
			require.NoError(t, err)
			assert.Equal(t, test.want, tr.config.Upstreams[id])
		})
	}
}

func TestAnUpstreamThatIsNoneSaysWhy(t *testing.T) {
	tr := newTranslation(snapshotOf(t, webService, `
apiVersion: v1
kind: Service
metadata: {name: elsewhere, namespace: prod}
spec: {type: ExternalName, externalName: example.com, ports: [{port: 80}]}
`), Options{})
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
		id, err := tr.upstream("prod", test.service, test.port)
		assert.EqualError(t, err, test.want)
		assert.Empty(t, id)
	}
	assert.Empty(t, tr.config.Upstreams)
}
