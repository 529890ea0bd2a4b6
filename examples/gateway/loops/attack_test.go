package loops

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates/katestest"
)

// attacker is a Gateway with a listener at a port that somebody else has, and another listener.
const attacker = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kates}
spec: {controllerName: gateway.example.com/kates}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: evil, namespace: shop}
spec:
  gatewayClassName: kates
  listeners:
  - {name: taken, port: 9000, protocol: HTTP, hostname: evil.example.com}
  - {name: other, port: 80, protocol: HTTP, hostname: other.example.net}
`

// listeners is the status of the attacker's listeners, in short.
func (w *world) listeners() (said []string) {
	w.t.Helper()
	g := &gatewayv1.Gateway{}
	g.APIVersion, g.Kind, g.Namespace, g.Name = gatewayv1.GroupVersion.String(), "Gateway", "shop", "evil"
	require.NoError(w.t, w.admin.Get(w.t.Context(), g, g))
	for _, l := range g.Status.Listeners {
		for _, c := range l.Conditions {
			if c.Type == string(gatewayv1.ListenerConditionAccepted) {
				said = append(said, c.Reason+" "+c.Message)
			}
		}
	}
	return said
}

func TestATakenPortStopsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crds, err := os.ReadFile("../demo/crds.yaml")
		require.NoError(t, err)
		w, n := newWorld(t, katestest.WithManifests(string(crds))), &fakeNginx{}
		n.cannotListen(9000, 9001)
		w.put(attacker)
		g, stop := w.start(n, nil) // a fresh start
		settle()
		assert.True(t, g.Serving())
		_, last := n.changes()
		assert.Equal(t, []string{"other.example.net", "shop.example.com"}, sorted(hosts(last)))
		want := []string{"PortUnavailable port 9000 is taken", "Accepted "}
		assert.Equal(t, want, w.listeners())

		w.put(ingressOf("second", "second") + "---" + strings.ReplaceAll(attacker, "listeners:", "listeners:\n  - {name: more, port: 9001, protocol: HTTP}"))
		settle()
		_, last = n.changes()
		assert.Equal(t, []string{"other.example.net", "second.example.com", "shop.example.com"}, sorted(hosts(last)), "others go on")
		assert.Equal(t, append([]string{"PortUnavailable port 9001 is taken"}, want...), w.listeners())

		stop()
		_, _ = w.start(n, nil)
		settle()
		n.cannotListen(9001) // the other one is given back: nothing else changes
		settle()
		settle()
		_, last = n.changes()
		assert.Equal(t, []string{"evil.example.com", "other.example.net", "second.example.com", "shop.example.com"}, sorted(hosts(last)))
		assert.Equal(t, []string{"PortUnavailable port 9001 is taken", "Accepted ", "Accepted "}, w.listeners())
		n.cannotListen()
		settle()
		settle()
		assert.Equal(t, []string{"Accepted ", "Accepted ", "Accepted "}, w.listeners())
		calls := n.called()
		settle()
		assert.Equal(t, calls, n.called(), "it comes to rest")
	})
}

// A report needs no configuration, and other endpoints need no report.
func TestWhoseEndpointsAreOnTheMachineIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, reports := newWorld(t), &fakeNginx{pushes: true}, &manyReports{}
		_, _ = w.start(n, func(g *Gateway) { reports.Reports, g.Reports = g.Reports, reports })
		settle()
		changes, _ := n.changes()
		calls := n.called()
		w.put(strings.ReplaceAll(endpointSlice, "10.0.0.1", "169.254.169.254"))
		settle()
		assert.Equal(t, []string{"EndpointsLeftOut"}, w.events())
		_, last := n.endpoints()
		assert.Empty(t, last["shop.web.80"])
		written := reports.n.Load()
		w.put(strings.ReplaceAll(endpointSlice, "10.0.0.1", "10.0.0.2"))
		settle()
		assert.Equal(t, []string{"EndpointsLeftOut", "Resolved"}, w.events())
		assert.Equal(t, written+1, reports.n.Load())
		w.put(strings.ReplaceAll(endpointSlice, "10.0.0.1", "10.0.0.3"))
		settle()
		assert.Equal(t, written+1, reports.n.Load())
		after, _ := n.changes()
		assert.Equal(t, changes, after)
		assert.Equal(t, calls, n.called(), "nginx is not asked")
	})
}

func TestWhoseEndpointsOfOtherClustersAreOnTheMachineIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{pushes: true}
		f, err := fleet.New(fleet.Options{})
		require.NoError(t, err)
		t.Cleanup(f.Close)
		east := w.cluster(f, "east")
		_, _ = w.start(n, func(g *Gateway) { g.Clusters = f })
		settle()
		assert.Empty(t, w.events())
		for _, address := range []string{"127.0.0.1", "10.9.0.2"} {
			require.NoError(t, east.Client(t).Upsert(t.Context(), nil, slice(address), nil))
			settle()
		}
		assert.Equal(t, []string{"EndpointsLeftOut", "Resolved"}, w.events())
	})
}

func TestATakenPortThatCannotBeLeftOutIsAnError(t *testing.T) {
	var p ports
	taken := []nginx.Taken{{Port: 1, Message: "no"}}
	changed, err := p.setTaken(taken, false)
	require.NoError(t, err)
	assert.True(t, changed)
	_, err = p.setTaken(taken, false)
	require.ErrorContains(t, err, "the configuration has nothing there any more, but no")
	changed, err = p.setTaken(taken, true)
	require.NoError(t, err)
	assert.False(t, changed, "as before")
}

// The page and the probes say what the gateway knows: a Gateway does not get their port.
func TestAPortOfTheGatewayItselfIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crds, err := os.ReadFile("../demo/crds.yaml")
		require.NoError(t, err)
		w, n := newWorld(t, katestest.WithManifests(string(crds))), &fakeNginx{}
		w.put(attacker)
		_, _ = w.start(n, func(g *Gateway) { g.Translate.Machine = translate.Machine{Ports: []int{9000}} })
		settle()
		_, last := n.changes()
		assert.Equal(t, []string{"other.example.net", "shop.example.com"}, sorted(hosts(last)))
		assert.Equal(t, []string{"PortUnavailable port 9000 is one of the gateway itself", "Accepted "}, w.listeners())
	})
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }
