package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

var getScenarios = []scenario{
	{"G4GetShowsOwnWritesWhetherAWatchIsRunningOrNot", get},
	{"GetOfEveryFormIsTheCallersOwn", getForms},
	{"GetOfBadInputIsAClearError", getInvalid},
}

func get(t *testing.T, e *env) {
	hard := func() string {
		q, err := kates.GetCached[corev1.ResourceQuota](e.ctx, e.client, e.ns, "q")
		if kates.IsNotFound(err) {
			assert.ErrorContains(t, err, "resourcequotas")
			return "not found"
		}
		require.NoError(t, err)
		return q.Spec.Hard.Pods().String()
	}
	for _, watched := range []bool{false, true} {
		if watched {
			e.watchQuotas()
		}
		assert.Equal(t, "not found", hard())
		require.NoError(t, e.client.Create(e.ctx, e.quota("q", "1"), nil))
		assert.Equal(t, "1", hard())
		require.NoError(t, e.client.Upsert(e.ctx, e.quota("q", "2"), e.quota("q", "2"), nil))
		assert.Equal(t, "2", hard())
		require.NoError(t, e.client.Delete(e.ctx, e.quota("q", "2"), nil))
		assert.Equal(t, "not found", hard())
	}
}

func getForms(t *testing.T, e *env) {
	e.foreignCreate(e.host("h", "a.example"), e.quota("q", "1"))
	type both struct {
		Hosts  []*kates.Unstructured `kates:"hosts"`
		Quotas []*corev1.ResourceQuota
	}
	for _, watched := range []bool{false, true} {
		if watched {
			var snap both
			awaitFirst(t, watch[both](e, e.client, kates.Query{Name: "Hosts", Namespace: e.ns}, kates.Query{Name: "Quotas", Namespace: e.ns}), &snap)
		}
		for range 2 { // the second copy does not show what was done to the first
			u, err := kates.GetCached[kates.Unstructured](e.ctx, e.client, e.ns, "h", kates.OfKind("host"))
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"hostname": "a.example"}, u.Object["spec"])
			u.Object["spec"].(map[string]any)["hostname"] = "mine"
			m, err := kates.GetCached[map[string]any](e.ctx, e.client, e.ns, "h", kates.OfKind("hosts.getambassador.io"))
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"hostname": "a.example"}, (*m)["spec"])
			(*m)["spec"].(map[string]any)["hostname"] = "mine"
			own, err := kates.GetCached[hostType](e.ctx, e.client, e.ns, "h", kates.OfKind("Host"))
			require.NoError(t, err)
			assert.Equal(t, "a.example", own.Spec.Hostname)
			short, err := kates.GetCached[kates.PartialObjectMetadata](e.ctx, e.client, e.ns, "h", kates.OfKind("Host"))
			require.NoError(t, err)
			assert.Equal(t, []string{"h", "Host"}, []string{short.Name, short.Kind})
			q, err := kates.GetCached[corev1.ResourceQuota](e.ctx, e.client, e.ns, "q", kates.OfKind("quota"))
			require.NoError(t, err)
			assert.Equal(t, "1", q.Spec.Hard.Pods().String())
			q.Spec.Hard[corev1.ResourcePods] = e.quota("", "9").Spec.Hard[corev1.ResourcePods]
		}
	}
	inDefault := e.newClient(kates.WithNamespace(e.ns))
	_, err := kates.GetCached[corev1.ResourceQuota](e.ctx, inDefault, "", "q")
	require.NoError(t, err)
	_, err = kates.GetCached[corev1.Namespace](e.ctx, e.client, "whatever", "none")
	require.True(t, kates.IsNotFound(err), "%v", err)
}

func getInvalid(t *testing.T, e *env) {
	_, err := kates.GetCached[corev1.ConfigMap](e.ctx, e.client, e.ns, "")
	assert.ErrorContains(t, err, "without a name")
	_, err = kates.GetCached[hostType](e.ctx, e.client, e.ns, "h")
	assert.ErrorContains(t, err, "OfKind")
	_, err = kates.GetCached[kates.PartialObjectMetadata](e.ctx, e.client, e.ns, "h")
	assert.ErrorContains(t, err, "OfKind")
	_, err = kates.GetCached[corev1.ConfigMap](e.ctx, e.client, e.ns, "h", kates.OfKind("secrets"))
	assert.ErrorContains(t, err, `not "secrets"`)
	_, err = kates.GetCached[kates.Unstructured](e.ctx, e.client, e.ns, "h", kates.OfKind("nothings"))
	assert.ErrorContains(t, err, "nothings")
	_, err = kates.GetCached[int](e.ctx, e.client, e.ns, "h", kates.OfKind("cm"))
	assert.ErrorContains(t, err, "*int")
	over, cancel := contextThatIsOver(e.ctx)
	defer cancel()
	_, err = kates.GetCached[corev1.ConfigMap](over, e.client, e.ns, "h")
	assert.ErrorIs(t, err, over.Err())
}
