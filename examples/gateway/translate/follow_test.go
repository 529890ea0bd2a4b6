package translate

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestFollowedEndpointsAreThoseOfTheTranslation(t *testing.T) {
	snap := snapshotOf(t, ourClass, webService, slice("a", "{addresses: [10.0.0.1]}"), slice("b", "{addresses: [10.0.0.2]}"),
		ingressOf("in", "rules:\n"+rule("a.example.com", to("/", "Prefix", "web"))))
	asked := 0
	o := Options{Endpoint: func(address string) string { asked++; return address }}
	var follow Endpoints
	check := func(changed int, want ...string) {
		t.Helper()
		d := Translate(snap, o)
		upstreams := slices.Collect(maps.Keys(d.Config.Upstreams))
		asked = 0
		got := follow.Of(snap, o, upstreams)
		assert.Equal(t, d.Config.Upstreams, got)
		assert.Equal(t, want, got["prod.web.80"])
		assert.Equal(t, changed, asked, "only what has changed is looked at")
	}
	check(2, "10.0.0.1:8080", "10.0.0.2:8080")
	check(0, "10.0.0.1:8080", "10.0.0.2:8080")

	moved := snap.Slices[1].DeepCopy()
	moved.Endpoints[0].Addresses = []string{"10.0.0.3"}
	snap.Slices = []*discoveryv1.EndpointSlice{snap.Slices[0], moved}
	check(2, "10.0.0.1:8080", "10.0.0.3:8080")

	web := types.NamespacedName{Namespace: "prod", Name: "web"}
	o.Remote = map[types.NamespacedName][]*discoveryv1.EndpointSlice{web: {moved.DeepCopy()}}
	o.Remote[web][0].Endpoints[0].Addresses = []string{"10.1.0.1"}
	check(3, "10.0.0.1:8080", "10.0.0.3:8080", "10.1.0.1:8080")

	service := snap.Services[web].DeepCopy()
	service.Spec.Ports[0].Name = "other"
	snap.Services[web] = service
	check(0) // no slice has that port
	service = service.DeepCopy()
	service.Spec.Ports[0].Port = 81
	snap.Services[web] = service
	assert.Empty(t, follow.Of(snap, o, []string{"prod.web.80", "nonsense"}), "these take another configuration")
	delete(snap.Services, web)
	assert.Empty(t, follow.Of(snap, o, []string{"prod.web.80"}))
}

func BenchmarkEndpoints(b *testing.B) {
	snap := largeSnapshot(b)
	var upstreams []string
	for n := range 2000 {
		upstreams = append(upstreams, fmt.Sprintf("prod.s-%d.80", n))
	}
	var follow Endpoints
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		snap.Slices[n%2000] = snap.Slices[n%2000].DeepCopy()
		follow.Of(snap, Options{}, upstreams)
	}
}
