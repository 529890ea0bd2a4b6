package translate

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates"
)

// A change of one object makes anew what is made of it, and nothing of the others.
func TestAChangeOfOneObjectMakesItsPartsAnew(t *testing.T) {
	base := largeSnapshot(t, 30)
	for _, test := range []struct {
		kind   string
		change func(*Snapshot)
		want   map[string]int
	}{
		{"nothing", func(*Snapshot) {}, map[string]int{}},
		{"an Ingress", func(s *Snapshot) { changedAt(&s.Ingresses, 20) }, map[string]int{
			"Ingresses": 1, "owners": 1, "sites": 1, "full buckets": 1, "sites served": 1, "reports": 1,
			"hosts": 1, "upstreams": 1, "Secrets by object": 1, "told by objects": 1,
			"buckets": 1, "servers by port": 1, "Secrets by host": 1, "told by hosts": 1,
		}},
		{"an HTTPRoute", func(s *Snapshot) { changedAt(&s.Routes, 1) }, map[string]int{
			"HTTPRoutes": 1, "owners": 1, "sites": 1, "full buckets": 1, "sites served": 1,
			"reports":               2, // its Gateway counts it
			"HTTPRoutes by Gateway": 1, "hosts": 1, "upstreams": 1, "Secrets by object": 1, "told by objects": 1,
			"buckets": 1, "servers by port": 1, "Secrets by host": 1, "told by hosts": 1,
		}},
		{"an EndpointSlice", func(s *Snapshot) { changedAt(&s.Slices, 50) }, map[string]int{"EndpointSlices by Service": 1, "endpoints": 1}},
		{"an endpoint", func(s *Snapshot) { movedAt(s, 50, "10.99.0.1") }, map[string]int{
			"EndpointSlices by Service": 1, "endpoints": 1, "endpoints left out": 1,
		}},
		{"an endpoint that is left out", func(s *Snapshot) { movedAt(s, 50, "127.0.0.1") }, map[string]int{
			"EndpointSlices by Service": 1, "endpoints": 1, "endpoints left out": 1, "reports": 1,
		}},
		{"a Service", func(s *Snapshot) { changedAt(&s.Services, 50) }, map[string]int{"Ingresses": 1, "endpoints": 1}},
		{"a Secret", func(s *Snapshot) { changedAt(&s.Secrets, 5) }, map[string]int{
			"key pairs": 1, "dates": 1, "sites": 1, "certificates": 1, "reports": 1, "reports of Secrets": 1,
		}},
	} {
		t.Run(test.kind, func(t *testing.T) {
			snap, translator := *base, new(Translator)
			o := Options{Now: born.AddDate(0, 1, 0)}
			_, err := translator.Translate(&snap, o)
			require.NoError(t, err)
			test.change(&snap)
			d, err := translator.Translate(&snap, o)
			require.NoError(t, err)
			assert.Equal(t, Translate(&snap, o), d)
			got := map[string]int{}
			for _, node := range translator.g.Stats().Nodes {
				if node.LastRuns > 0 {
					got[node.Name] = node.LastRuns
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// movedAt moves an endpoint of an EndpointSlice.
func movedAt(s *Snapshot, at int, address string) {
	changedAt(&s.Slices, at)
	s.Slices[at].Endpoints[0].Addresses = []string{address}
}

// history is a cluster that changes from snapshot to snapshot, which share what stays.
type history struct {
	all     *tenants
	things  map[string]*thing
	objects map[*thing]kates.Object
	few     fewSlices
	snap    Snapshot
	o       Options
}

// newHistory begins with the Services and Secrets of all namespaces.
func newHistory(all *tenants) *history {
	h := &history{all: all, things: map[string]*thing{}, objects: map[*thing]kates.Object{}, few: fewSlices{}}
	h.snap.Classes, h.snap.GatewayClasses = all.classes, all.gateways
	h.snap.Services, h.snap.Secrets = slices.Clone(all.services), slices.Clone(all.secrets)
	return h
}

// step changes something, and returns the next snapshot.
func (h *history) step(t *rapid.T) *Snapshot {
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		h.change(t)
	}
	s := h.snap
	s.Ingresses, s.Gateways, s.Routes = nil, nil, nil
	for _, called := range slices.Sorted(maps.Keys(h.things)) {
		put(t, &s, h.objects[h.things[called]])
	}
	for n := range rapid.IntRange(0, 2).Draw(t, "drawn") { // with canaries, default backends, and what is wrong
		s.Ingresses = append(s.Ingresses, drawn(t, n))
	}
	byName(s.Ingresses)
	if rapid.IntRange(0, 7).Draw(t, "any order") == 0 {
		s.Ingresses, s.Routes = rapid.Permutation(s.Ingresses).Draw(t, "ingresses"), rapid.Permutation(s.Routes).Draw(t, "routes")
	}
	return &s
}

func (h *history) change(t *rapid.T) {
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	case 0, 1, 2, 3, 4: // an object comes, or has another version
		one := thingOf(mixed(rapid.Uint64().Draw(t, "thing")))
		called := one.namespace + "/" + one.name
		h.things[called], h.objects[one] = one, map[byte]func() kates.Object{
			'i': func() kates.Object { return one.ingress() }, 'g': func() kates.Object { return one.gateway() }, 'r': func() kates.Object { return one.route() },
		}[one.kind]()
		h.objects[one].SetResourceVersion(rapid.StringMatching("[1-3]").Draw(t, "version"))
	case 5: // one goes
		if len(h.things) > 0 {
			delete(h.things, pick(t, "gone", slices.Sorted(maps.Keys(h.things))...))
		}
	case 6: // a certificate comes, goes, or is broken
		h.snap.Secrets = toggled(t, h.snap.Secrets, h.all.secrets, func(s *corev1.Secret) { s.Data = map[string][]byte{corev1.TLSCertKey: []byte("x")} })
	case 7:
		h.snap.Services = toggled(t, h.snap.Services, h.all.services, func(s *corev1.Service) { s.Spec.Ports = nil })
	case 8:
		h.few.change(t)
		h.snap.Slices = append(slices.Clone(h.all.slices), h.few.all()...)
		byName(h.snap.Slices)
	case 9:
		h.refuse(t)
	case 10:
		h.snap.Settings = nil
		if rapid.Bool().Draw(t, "settings") {
			one := &corev1.ConfigMap{Data: map[string]string{"workers": pick(t, "workers", "1", "x"), "connections": "100"}}
			one.Kind, one.Name, one.UID = "ConfigMap", "settings", "settings"
			h.snap.Settings = []*corev1.ConfigMap{one}
		}
	case 11:
		h.another(t)
	}
}

// another changes the options.
func (h *history) another(t *rapid.T) {
	h.o.Published = pick(t, "published", nil, []string{"192.0.2.1"})
	h.o.Zone = pick(t, "zone", "", "a")
	h.o.Now = pick(t, "now", time.Time{}, born.AddDate(0, 1, 0), born.AddDate(2, 0, 0))
	h.o.Address = pick(t, "address", netip.Addr{}, netip.MustParseAddr("10.1.1.1"))
	h.o.Addresses = pick(t, "addresses", nil, []netip.Addr{netip.MustParseAddr("10.1.1.2"), netip.MustParseAddr("10.1.1.3")})
	h.o.Machine.Ports = pick(t, "ports", nil, []int{8080})
	h.o.Machine.Taken = pick(t, "taken", nil, []nginx.Taken{{Port: 443, Message: "taken"}, {Address: "10.1.1.1", Port: 80, Message: "taken"}})
	h.o.ReportsOnly = rapid.IntRange(0, 4).Draw(t, "reports only") == 0
	h.o.Remote = nil
	for _, s := range h.few.all() {
		h.o.Remote = append(h.o.Remote, fleet.Object[*discoveryv1.EndpointSlice]{Cluster: "other", Object: s})
	}
}

// refuse refuses an object, in whose place another version is served, or nothing.
func (h *history) refuse(t *rapid.T) {
	h.o.Refused = maps.Clone(h.o.Refused)
	if h.o.Refused == nil || rapid.IntRange(0, 3).Draw(t, "heal") == 0 {
		h.o.Refused = map[types.UID]Refusal{}
	}
	for _, called := range slices.Sorted(maps.Keys(h.things)) {
		of := h.objects[h.things[called]]
		if rapid.IntRange(0, 2).Draw(t, "refuse") > 0 {
			continue
		}
		one := Refusal{Version: of.GetResourceVersion(), Message: "no", Held: rapid.IntRange(0, 3).Draw(t, "held") == 0}
		if rapid.Bool().Draw(t, "last good") {
			one.LastGood = runtime.Object(of).DeepCopyObject().(kates.Object)
			one.LastGood.SetResourceVersion("0")
		}
		h.o.Refused[of.GetUID()] = one
		return
	}
}

// toggled gives a list in which one object is there or not, or spoilt.
func toggled[T any, P interface {
	*T
	kates.Object
}](t *rapid.T, now, all []P, spoil func(P)) []P {
	next := slices.Clone(now)
	one := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
	at := slices.IndexFunc(next, func(o P) bool { return name(o) == name(one) })
	switch {
	case at < 0:
		next = append(next, one)
	case rapid.Bool().Draw(t, "spoil"):
		next[at] = runtime.Object(one).DeepCopyObject().(P)
		spoil(next[at])
	default:
		next = slices.Delete(next, at, at+1)
	}
	byName(next)
	return next
}

// A step is a snapshot. The functions of the graph are run twice now and then, and compared.
func TestModelATranslatorSaysWhatAFreshTranslationSays(t *testing.T) {
	all := newTenants(t)
	world := snapshotOf(t, ourClass)
	for _, namespace := range []string{"dev", "prod"} { // those of drawn Ingresses
		for _, s := range world.Services {
			s = s.DeepCopy()
			s.Namespace = namespace
			all.services = append(all.services, s)
		}
	}
	byName(all.services)
	rounds.Check(t, func(t *rapid.T, step func()) {
		h, translator := newHistory(all), &Translator{}
		if rapid.IntRange(0, 15).Draw(t, "verified") == 0 {
			translator.g = newGraph(derive.Verified())
		}
		for range rapid.IntRange(1, 8).Draw(t, "snapshots") {
			snap := h.step(t)
			got, err := translator.Translate(snap, h.o)
			require.NoError(t, err)
			want := Translate(snap, h.o)
			require.Equal(t, want, got)
			step()
		}
	})
}

// A mistake in this package makes no configuration, be it in the part of one object.
func TestATranslatorThatCannotMakeAPartMakesNothing(t *testing.T) {
	snap := snapshotOf(t, ourClass, ingressOf("in", "rules:\n"+rule("a.example.com", to("/", "Prefix", "web"))))
	bad := Options{Port: func(int) int { panic("no port") }}
	_, err := new(Translator).Translate(snap, bad)
	require.ErrorContains(t, err, "no port")
	require.True(t, strings.HasPrefix(err.Error(), "arrangement: "), "it names the part: %v", err)
}
