package suite

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
)

var keepingScenarios = []scenario{
	{"G4OwnWritesOfObjectsThatAreHeldInPartAreInTheVeryNextUpdate", keptOwnWrites},
	{"G6WhatIsHeldInPartIsTheWholePrunedUnderRandomWrites", keptAtRandom},
	{"WhatIsHeldInPartIsNotTheBaseOfAWrite", keptModify},
}

// keptParts are objects of which only a part is held.
type keptParts struct {
	ConfigMaps []*corev1.ConfigMap
	Untyped    []*kates.Unstructured `kates:"configmaps"`
	Hosts      []*kates.Unstructured `kates:"hosts.getambassador.io"`
	Deltas     []*kates.Delta
}

// notOfTheServer selects all ConfigMaps but the one that a server makes in each namespace.
const notOfTheServer = "metadata.name!=kube-root-ca.crt"

func (e *env) watchParts() (*kates.Snapshots[keptParts], *keptParts) {
	e.t.Helper()
	data := kates.Query{Namespace: e.ns, FieldSelector: notOfTheServer, Projection: kates.Keep("data.kept", "metadata.labels.kept")}
	typed, untyped := data, data
	typed.Name, untyped.Name = "ConfigMaps", "Untyped"
	hosts := kates.Query{Name: "Hosts", Namespace: e.ns, Projection: kates.Keep("spec.hostname")}
	snapshots, snap := watch[keptParts](e, e.client, typed, untyped, hosts), new(keptParts)
	awaitFirst(e.t, snapshots, snap)
	return snapshots, snap
}

// twoParts returns a ConfigMap of which a part is held.
func (e *env) twoParts(name, kept, dropped string) *corev1.ConfigMap {
	cm := e.configMap(name, "kept", kept, "dropped", dropped)
	cm.Labels = map[string]string{"kept": kept, "dropped": dropped}
	cm.Annotations = map[string]string{"dropped": dropped}
	return cm
}

// prunedOf is what is held of such a ConfigMap.
func prunedOf(t *testing.T, whole metav1.Object) map[string]any {
	t.Helper()
	u := asUnstructured(t, whole)
	kept, _, err := unstructured.NestedString(u.Object, "data", "kept")
	require.NoError(t, err)
	metadata := map[string]any{"namespace": u.GetNamespace(), "name": u.GetName(), "labels": map[string]any{"kept": kept}}
	for field, value := range map[string]string{"uid": string(u.GetUID()), "resourceVersion": u.GetResourceVersion()} {
		if value != "" {
			metadata[field] = value
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": map[string]any{"kept": kept}}
}

func keptOwnWrites(t *testing.T, e *env) {
	snapshots, snap := e.watchParts()
	shows := func(whole *corev1.ConfigMap, delta string) {
		t.Helper()
		now(t, snapshots, snap)
		assert.Equal(t, prunedOf(t, whole), shown(t, snap.Untyped, "a").Object)
		assert.Equal(t, prunedOf(t, whole), asUnstructured(t, shown(t, snap.ConfigMaps, "a")).Object)
		assert.Equal(t, []string{delta, delta}, deltaNames(snap.Deltas))
	}
	var whole corev1.ConfigMap
	require.NoError(t, e.client.Create(e.ctx, e.twoParts("a", "1", "1"), &whole))
	assert.Equal(t, "1", whole.Data["dropped"], "the answer is whole")
	shows(&whole, "add a")
	require.NoError(t, e.client.Patch(e.ctx, e.configMap("a"), kates.MergePatchType, []byte(`{"data":{"kept":"2","dropped":"2"}}`), &whole))
	whole.Labels["kept"] = "2"
	require.NoError(t, e.client.Update(e.ctx, whole.DeepCopy(), &whole))
	shows(&whole, "update a")
	require.NoError(t, e.client.Delete(e.ctx, &whole, nil))
	now(t, snapshots, snap)
	assert.Empty(t, snap.Untyped)
	assert.Empty(t, snap.ConfigMaps)

	host := e.host("h", "a.example")
	host["spec"].(map[string]any)["tlsSecret"] = map[string]any{"name": "s"}
	require.NoError(t, e.client.Create(e.ctx, host, nil))
	now(t, snapshots, snap)
	assert.Equal(t, map[string]any{"hostname": "a.example"}, shown(t, snap.Hosts, "h").Object["spec"])
}

func keptAtRandom(t *testing.T, e *env) {
	e.foreignCreate(e.twoParts("n0", "0", "0"))
	snapshots, snap := e.watchParts()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		cm := e.twoParts(fmt.Sprintf("n%d", random.IntN(4)), fmt.Sprint(random.IntN(2)), fmt.Sprint(i))
		there := byName(e.configMapsNow(), cm.Name) != nil
		switch own := random.IntN(2) == 0; {
		case !there && own:
			require.NoError(t, e.client.Create(e.ctx, cm, nil))
		case !there:
			e.foreignCreate(cm)
		case random.IntN(4) == 0 && own:
			require.NoError(t, e.client.Delete(e.ctx, cm, nil))
		case random.IntN(4) == 0:
			e.foreignDelete(cm)
		case own:
			require.NoError(t, e.client.Update(e.ctx, cm, nil))
		default:
			e.foreignUpdate(cm)
		}
		if random.IntN(3) == 0 {
			_, err := snapshots.Update(e.ctx, snap)
			require.NoError(t, err)
		}
	}
	e.foreignCreate(e.twoParts("z-last", "0", "0"))
	settled := func() bool { return byName(snap.ConfigMaps, "z-last") != nil && byName(snap.Untyped, "z-last") != nil }
	if !settled() {
		awaitEach(t, snapshots, snap, "the last object", settled)
	}
	var want, typed, untyped []map[string]any
	for _, whole := range e.configMapsNow() {
		want = append(want, prunedOf(t, whole))
	}
	for i, cm := range snap.ConfigMaps {
		typed, untyped = append(typed, asUnstructured(t, cm).Object), append(untyped, snap.Untyped[i].Object)
	}
	assert.Equal(t, want, typed)
	assert.Equal(t, want, untyped)
}

// configMapsNow returns what the server has, in the order of snapshots.
func (e *env) configMapsNow() (all []*corev1.ConfigMap) {
	e.t.Helper()
	q := kates.Query{Kind: "configmaps", Namespace: e.ns, FieldSelector: notOfTheServer}
	require.NoError(e.t, e.client.List(e.ctx, q, &all))
	return all
}

func keptModify(t *testing.T, e *env) {
	e.foreignCreate(e.twoParts("a", "1", "1"))
	snapshots, snap := e.watchParts()
	_, err := kates.Modify(e.ctx, e.client, shown(t, snap.ConfigMaps, "a"), func(cm *corev1.ConfigMap) error {
		cm.Data["kept"] += "1"
		return nil
	})
	require.NoError(t, err)
	type part struct {
		Data struct {
			Kept string `json:"kept"`
		} `json:"data"`
	}
	_, err = kates.Modify(e.ctx, e.client, shown(t, snap.ConfigMaps, "a"), func(cm *part) error {
		cm.Data.Kept += "1"
		return nil
	})
	require.NoError(t, err)
	now(t, snapshots, snap)
	assert.Equal(t, map[string]string{"kept": "111"}, shown(t, snap.ConfigMaps, "a").Data)
	whole := shown(t, e.configMapsNow(), "a")
	assert.Equal(t, map[string]string{"kept": "111", "dropped": "1"}, whole.Data)
	assert.Equal(t, map[string]string{"dropped": "1"}, whole.Annotations)
	if e.backend.Real {
		again := shown(t, snap.ConfigMaps, "a").DeepCopy()
		require.ErrorIs(t, e.client.Update(e.ctx, again, nil), kates.ErrPartial)
	}
}
