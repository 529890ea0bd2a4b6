package traffic

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// statuses are those of a namespace.
type statuses struct {
	Ingresses []*networkingv1.Ingress
	Routes    []*gatewayv1.HTTPRoute
	Gateways  []*gatewayv1.Gateway
}

// say reports whether all statuses are written, with one address.
func (s *statuses) say(address string) bool {
	for _, in := range s.Ingresses {
		if at := in.Status.LoadBalancer.Ingress; len(at) != 1 || at[0].IP != address {
			return false
		}
	}
	for _, r := range s.Routes {
		if len(r.Status.Parents) != 1 || len(r.Status.Parents[0].Conditions) == 0 {
			return false
		}
	}
	for _, g := range s.Gateways {
		if len(g.Status.Addresses) != 1 || g.Status.Addresses[0].Value != address {
			return false
		}
	}
	return len(s.Ingresses) >= 30 && len(s.Routes) >= 20 && len(s.Gateways) == 1
}

// writes counts those of each object of the namespace, as etcd has got them.
func (w *world) writes(since int64, until func()) map[string]int {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	var mu sync.Mutex
	found := map[string]int{}
	ended := make(chan error, 1)
	go func() {
		ended <- w.cluster.History(ctx, since, func(c apiserver.Change) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(c.Key, "/"+w.namespace+"/") {
				parts := strings.Split(c.Key, "/")
				found[strings.Join(parts[len(parts)-3:], "/")]++
			}
		})
	}()
	until()
	mark := &corev1.ConfigMap{}
	mark.APIVersion, mark.Kind, mark.GenerateName = "v1", "ConfigMap", "mark-"
	w.create(mark)
	w.eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return found["configmaps/"+w.namespace+"/"+mark.Name] > 0
	}, "the history is read")
	stop()
	require.NoError(w, <-ended)
	return found
}

func TestTheLeaderWritesEachStatusOnceAndStatusesReloadNothing(t *testing.T) {
	w := newWorld(t)
	a := w.service("a", 2)
	addresses := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}
	addresses.APIVersion, addresses.Kind, addresses.Name = "v1", "Service", "addresses"
	w.create(addresses)
	publish := func(address string) {
		addresses.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
		require.NoError(t, w.client.UpdateStatus(w.Context(), addresses, addresses))
	}
	publish("192.0.2.1")
	both := []*gateway{
		w.gateway("-publish-service", w.namespace+"/addresses").serve(),
		w.gateway("-publish-service", w.namespace+"/addresses").serve(),
	}
	queries := []kates.Query{}
	for _, name := range []string{"Ingresses", "Routes", "Gateways"} {
		queries = append(queries, kates.Query{Name: name, Namespace: w.namespace})
	}
	snapshots, err := kates.Watch[statuses](t.Context(), w.client, queries...)
	require.NoError(t, err)
	defer snapshots.Close()
	say := func(address string) {
		t.Helper()
		katestest.Until(t, snapshots, func(s *statuses) bool { return s.say(address) }, katestest.Within(patience))
	}
	once := func(found map[string]int, want int) {
		t.Helper()
		for n := range 30 {
			assert.Equal(t, want, found[fmt.Sprintf("ingress/%s/in-%d", w.namespace, n)], n)
		}
		for n := range 20 {
			assert.Equal(t, want, found[fmt.Sprintf("httproutes/%s/route-%d", w.namespace, n)], n)
		}
	}

	since, err := w.cluster.Revision(t.Context())
	require.NoError(t, err)
	w.create(webGateway())
	once(w.writes(since, func() {
		for n := range 30 {
			w.create(ingress(fmt.Sprint("in-", n), fmt.Sprint(n, ".in.test"), to{"/", "a"}))
		}
		for n := range 20 {
			w.create(route(fmt.Sprint("route-", n), fmt.Sprint(n, ".route.test"), to{"/", "a"}))
		}
		say("192.0.2.1")
		w.makeBad() // reports that come later than all statuses
		w.seesBad()
	}), 2)

	l := w.load([]healthy{{"http://0.in.test/", "a"}, {"http://0.route.test/", "a"}}, both...)
	reloads := func() []float64 {
		for _, g := range both {
			w.settled(g)
		}
		return []float64{both[0].metric("nginx_reloads_total"), both[1].metric("nginx_reloads_total")}
	}
	before := reloads()
	since, err = w.cluster.Revision(t.Context())
	require.NoError(t, err)
	found := w.writes(since+1, func() {
		publish("192.0.2.2")
		say("192.0.2.2")
		w.serves(a) // so that the configuration is made again, with the new statuses
		assert.Equal(t, before, reloads(), "a status reloads nothing")
	})
	assert.Equal(t, 1, found["gateways/"+w.namespace+"/"+gatewayName])
	for n := range 30 {
		assert.Equal(t, 1, found[fmt.Sprintf("ingress/%s/in-%d", w.namespace, n)], n)
	}
	t.Logf("%g and %g reloads, none of them by a burst of 31 statuses", before[0], before[1])
	l.halt()
}
