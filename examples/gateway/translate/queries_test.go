package translate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

const clusterOfQueries = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: prod}
spec:
  defaultBackend: {service: {name: web, port: {number: 80}}}
  tls: [{hosts: [shop.example.com], secretName: cert}, {hosts: [b.example.com]}]
---
apiVersion: v1
kind: Secret
metadata: {name: cert, namespace: prod, annotations: {a: b}}
data: {tls.crt: YQ==, tls.key: Yg==, password: Yw==}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: prod}
data: {password: Yw==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: gateway}
data: {workers: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: another, namespace: gateway}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: prod}
spec: {ports: [{port: 80}]}
status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: prod, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.1], nodeName: node-1, hostname: h, zone: a, hints: {forZones: [{name: a}]}, targetRef: {kind: Pod, name: p}}]
`

func watchOf(t *testing.T, settings string) (*kates.Client, *kates.Snapshots[Snapshot], *Snapshot) {
	server := katestest.NewServer(t, katestest.WithManifests(clusterOfQueries))
	client := server.Client(t, kates.WithInterval(0), kates.WithScheme(Scheme()))
	ctx, cancel := context.WithCancel(t.Context())
	snaps, err := kates.Watch[Snapshot](ctx, client, Queries("gateway", settings)...)
	require.NoError(t, err)
	t.Cleanup(func() { cancel(); snaps.Close() })
	snap := &Snapshot{}
	for changed(snaps) { // which kinds there are may be known after the first snapshot
		_, err := snaps.Update(ctx, snap)
		require.NoError(t, err)
	}
	require.NotEmpty(t, snap.Ingresses)
	return client, snaps, snap
}

// changed reports whether there is a signal once nothing more happens.
func changed(snaps *kates.Snapshots[Snapshot]) bool {
	time.Sleep(time.Minute) // of the bubble
	synctest.Wait()
	select {
	case <-snaps.Changed():
		return true
	default:
		return false
	}
}

func TestASnapshotHasWhatIsNamedAndNoMoreOfItThanIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, snap := watchOf(t, "settings")
		require.Len(t, snap.Secrets, 1, "no Secret that nobody names")
		cert := snap.Secrets[0]
		assert.Equal(t, "cert", cert.Name)
		assert.Equal(t, map[string][]byte{"tls.crt": []byte("a"), "tls.key": []byte("b")}, cert.Data)
		require.Len(t, snap.Settings, 1)
		assert.Equal(t, "settings", snap.Settings[0].Name)
		assert.Empty(t, snap.service("web").Status)
		endpoint := snap.Slices[0].Endpoints[0]
		assert.Nil(t, endpoint.TargetRef)
		assert.Nil(t, endpoint.NodeName)
		assert.Nil(t, endpoint.Hostname)
		assert.Equal(t, "a", endpoint.Hints.ForZones[0].Name)
		assert.NotEmpty(t, snap.Namespaces)
		assert.Nil(t, snap.Gateways, "a cluster without the Gateway API")
	})
}

func TestWithoutSettingsNoConfigMapIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, snap := watchOf(t, "")
		assert.Empty(t, snap.Settings)
	})
}

func TestAStatusIsNoChangeOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, snaps, snap := watchOf(t, "settings")
		shop := snap.Ingresses[0].DeepCopy()
		shop.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
		require.NoError(t, client.UpdateStatus(t.Context(), shop, shop))
		assert.False(t, changed(snaps), "a status is a signal")
		shop.Annotations = map[string]string{"gateway.example.com/timeout": "1s"}
		require.NoError(t, client.Update(t.Context(), shop, shop))
		assert.True(t, changed(snaps))
	})
}

func TestTheSecretsOfAGatewayAreWatched(t *testing.T) {
	ptr := func(s string) *gatewayv1.Namespace { return (*gatewayv1.Namespace)(&s) }
	kind, group := gatewayv1.Kind("Secret"), gatewayv1.Group("")
	other := gatewayv1.Kind("ConfigMap")
	g := &gatewayv1.Gateway{Spec: gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{
		{},
		{TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{
			{Name: "a"}, {Name: "b", Namespace: ptr("other"), Kind: &kind, Group: &group}, {Name: "c", Kind: &other},
		}}},
	}}}
	assert.Equal(t, []types.NamespacedName{{Name: "a"}, {Namespace: "other", Name: "b"}}, secretsOfGateway(g))
}
