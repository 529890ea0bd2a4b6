package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/fleet"
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
		got, err := follow.Of(snap, o, upstreams)
		require.NoError(t, err)
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

	away := moved.DeepCopy()
	away.Endpoints[0].Addresses = []string{"10.1.0.1"}
	o.Remote = []fleet.Object[*discoveryv1.EndpointSlice]{{Cluster: "other", Object: away}}
	check(3, "10.0.0.1:8080", "10.0.0.3:8080", "10.1.0.1:8080")

	service := snap.service("web").DeepCopy()
	service.Spec.Ports[0].Name = "other"
	snap.Services = []*corev1.Service{service}
	check(0) // no slice has that port
	service = service.DeepCopy()
	service.Spec.Ports[0].Port = 81
	snap.Services = []*corev1.Service{service}
	got, err := follow.Of(snap, o, []string{"prod.web.80", "nonsense"})
	require.NoError(t, err)
	assert.Empty(t, got, "these take another configuration")
	snap.Services = nil
	got, err = follow.Of(snap, o, []string{"prod.web.80"})
	require.NoError(t, err)
	assert.Empty(t, got)
}

// fewSlices are the EndpointSlices of few Services, whose other objects stay.
type fewSlices map[string]*discoveryv1.EndpointSlice

// change changes one of them, as a server does: with another object.
func (f fewSlices) change(t *rapid.T) {
	name := pick(t, "slice", "a", "b", "c", "d")
	if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		delete(f, name)
		return
	}
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Namespace, s.Name = pick(t, "namespace", "prod", "dev"), name
	s.Labels = map[string]string{discoveryv1.LabelServiceName: pick(t, "service", "web", "api", "none")}
	s.Ports = []discoveryv1.EndpointPort{{Name: new(pick(t, "port", "http", "other")), Port: new(int32(8080))}}
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pick(t, "address", "10.0.0.1", "10.0.0.2", "10.0.0.3", "127.0.0.1", "127.0.0.2")}, Conditions: discoveryv1.EndpointConditions{Ready: new(rapid.Bool().Draw(t, "ready"))},
		})
	}
	f[name] = s
}

// all is as a snapshot has them.
func (f fewSlices) all() []*discoveryv1.EndpointSlice {
	return slices.SortedFunc(maps.Values(f), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// What has been followed through any changes is what a translation says that has seen nothing
// before.
func TestEndpointsThatWereFollowedAreThoseOfAFreshTranslation(t *testing.T) {
	api := strings.ReplaceAll(webService, "name: web", "name: api")
	base := snapshotOf(t, ourClass, webService, api, ingressOf("in", "rules:\n"+rule("a.example.com", to("/", "Prefix", "web"), to("/api", "Prefix", "api"))))
	rapid.Check(t, func(t *rapid.T) {
		var follow Endpoints
		few := fewSlices{}
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				few.change(t)
			}
			snap := *base
			snap.Slices = few.all()
			if rapid.IntRange(0, 4).Draw(t, "without") == 0 {
				snap.Services = []*corev1.Service{base.service("web")}
			}
			want := Translate(&snap, Options{}).Config.Upstreams
			got, err := follow.Of(&snap, Options{}, []string{"prod.api.80", "prod.web.80"})
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

func BenchmarkEndpoints(b *testing.B) {
	snap := largeSnapshot(b, 1000)
	var upstreams []string
	for n := range 2000 {
		upstreams = append(upstreams, fmt.Sprintf("prod.s-%04d.80", n))
	}
	var follow Endpoints
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		snap.Slices = slices.Clone(snap.Slices)
		snap.Slices[n%2000] = snap.Slices[n%2000].DeepCopy()
		_, err := follow.Of(snap, Options{}, upstreams)
		require.NoError(b, err)
	}
}
