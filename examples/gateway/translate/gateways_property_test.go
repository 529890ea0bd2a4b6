package translate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates/katestest"
)

// goodObjects and badObjects are what the Gateways of the property tests are made of.
var (
	goodObjects = []string{
		gatewayOf("edge", `{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}`, `{name: shop, port: 80, protocol: HTTP, hostname: "*.example.com"}`),
		gatewayOf("second", `{name: http, port: 8080, protocol: HTTP}`),
		routeOf("one", "parentRefs: [{name: edge}, {name: second}]\n  hostnames: [a.example.com]", toWeb, `matches: [{path: {value: /a}, headers: [{name: a, value: b}]}], `+toWeb),
		routeOf("two", toEdge, `matches: [{path: {value: /a}}], `+toWeb),
		routeOf("three", "parentRefs: [{name: edge, sectionName: shop}]\n  hostnames: [\"*.a.example.com\"]", `filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]`),
		grant("prod", "HTTPRoute", "test", "Service", "web"),
	}
	badObjects = []string{
		gatewayOf("bad", `{name: udp, port: 53, protocol: UDP}`),
		gatewayOf("bad", `{name: same, port: 80, protocol: HTTP, hostname: "*.example.com"}`),
		gatewayOf("bad", `{name: tls, port: 80, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}`),
		gatewayOf("bad", `{name: http, port: 90, protocol: HTTP}`) + "  addresses: [{value: 10.9.9.9}]\n",
		gatewayOf("bad", `{name: http, port: 90, protocol: HTTP, hostname: "a;b"}`),
		routeOf("bad", `parentRefs: [{name: edge, sectionName: none}]`, toWeb),
		routeOf("bad", `parentRefs: [{name: second}]`+"\n  hostnames: [\"a b\"]", toWeb),
		routeOf("bad", "parentRefs: [{name: edge, sectionName: shop}]\n  hostnames: [a.example.net]", toWeb),
		routeOf("bad", toEdge+"\n  hostnames: [a.example.com]", toWeb), // another one has the host and the path
	}
)

func TestABadObjectChangesNothingOfTheOthers(t *testing.T) {
	before := Translate(snapshotOf(t, append([]string{cluster}, goodObjects...)...), Options{})
	uncount(before)
	for i, bad := range badObjects {
		d := Translate(snapshotOf(t, append(append([]string{cluster}, goodObjects...), bad)...), Options{})
		uncount(d)
		assert.Equal(t, before.Config, d.Config, "%d", i)
		var others []Report
		for _, r := range d.Reports {
			if r.Object.GetName() == "bad" {
				assert.NotEmpty(t, r.Problems, "%d", i)
			} else {
				others = append(others, r)
			}
		}
		assert.Equal(t, before.Reports, others, "%d", i)
	}
}

// uncount takes the numbers of attached Routes away: a Route attaches even if another one has all
// of its paths.
func uncount(d *Desired) {
	for _, r := range d.Reports {
		if s, ok := r.Status.(*gatewayv1.GatewayStatus); ok {
			for i := range s.Listeners {
				s.Listeners[i].AttachedRoutes = 0
			}
		}
	}
}

func TestTheOrderOfGatewaysAndRoutesDoesNotMatter(t *testing.T) {
	type world struct {
		snap Snapshot
		want *Desired
	}
	var worlds []world // read once: to read YAML takes longer than to translate it
	for _, bad := range badObjects {
		snap := snapshotOf(t, append(append([]string{cluster}, goodObjects...), bad)...)
		worlds = append(worlds, world{*snap, Translate(snap, Options{})})
	}
	rapid.Check(t, func(t *rapid.T) {
		w := worlds[rapid.IntRange(0, len(worlds)-1).Draw(t, "world")]
		snap := w.snap
		snap.Gateways = rapid.Permutation(snap.Gateways).Draw(t, "gateways")
		snap.Routes = rapid.Permutation(snap.Routes).Draw(t, "routes")
		snap.GatewayClasses = rapid.Permutation(snap.GatewayClasses).Draw(t, "classes")
		snap.Grants = rapid.Permutation(snap.Grants).Draw(t, "grants")
		assert.Equal(t, w.want, Translate(&snap, Options{}))
	})
}

func TestGatewaysAsAWhole(t *testing.T) {
	all := append(append([]string{cluster}, goodObjects...), badObjects[0], badObjects[5])
	d := Translate(snapshotOf(t, all...), Options{Published: []string{"192.0.2.1"}})
	values := []any{strings.Join(served(d.Config), "\n")}
	for _, r := range d.Reports {
		values = append(values, map[string]any{"object": sourceOf(r.Object), "status": r.Status, "problems": r.Problems})
	}
	katestest.Golden(t, "testdata/gateways.golden", values...)
}
