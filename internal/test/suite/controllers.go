package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// controllerScenarios are the steps of a controller, and those that its unit test does to it.
var controllerScenarios = []scenario{
	{"G4EachStepOfAControllerAndOfTheWorldAroundItIsInTheNextUpdate", controllerSteps},
	{"G4AReconcilerThatWritesWhatItLacksIsDoneAfterOnePass", onePass},
}

// controlled is what a controller reads: what is wanted, and what it made from it.
type controlled struct {
	Hosts      []*hostType `kates:"hosts.getambassador.io"`
	ConfigMaps map[string]*corev1.ConfigMap
	Deltas     []*kates.Delta
}

func (e *env) watchControlled() (*kates.Snapshots[controlled], *controlled) {
	e.t.Helper()
	made := kates.Query{Name: "ConfigMaps", Namespace: e.ns, LabelSelector: "made=yes"}
	snapshots := watch[controlled](e, e.client, kates.Query{Name: "Hosts", Namespace: e.ns}, made)
	var snap controlled
	awaitFirst(e.t, snapshots, &snap)
	return snapshots, &snap
}

func controllerSteps(t *testing.T, e *env) {
	snapshots, snap := e.watchControlled()
	ours := func(write error, want ...string) {
		t.Helper()
		require.NoError(t, write)
		now(t, snapshots, snap)
		assert.Equal(t, want, deltaNames(snap.Deltas))
	}
	theirs := func(want string) {
		t.Helper()
		awaitEach(t, snapshots, snap, want, func() bool { return assert.ObjectsAreEqual([]string{want}, deltaNames(snap.Deltas)) })
	}
	data := func() string { return snap.ConfigMaps["cm"].Data["v"] }
	made := func(v string, labels ...string) *corev1.ConfigMap {
		cm := e.labelled("cm", labels...)
		cm.Data = map[string]string{"v": v}
		return cm
	}
	patch := func(pt kates.PatchType, data string) error {
		return e.client.Patch(e.ctx, made(""), pt, []byte(data), nil)
	}

	host := e.host("h", "a.example")
	e.foreignCreate(host)
	theirs("add h")
	ours(e.client.Create(e.ctx, made("1", "made", "yes"), nil), "add cm")
	require.NoError(t, e.client.Get(e.ctx, host, &host))
	host["status"] = map[string]any{"state": "Ready"}
	ours(e.client.UpdateStatus(e.ctx, host, nil), "update h")
	e.foreignUpdate(e.host("h", "b.example"))
	theirs("update h")
	assert.Equal(t, "b.example", snap.Hosts[0].Spec.Hostname)

	ours(patch(kates.MergePatchType, `{"data":{"v":"2"}}`), "update cm")
	ours(patch(kates.JSONPatchType, `[{"op":"replace","path":"/data/v","value":"3"}]`), "update cm")
	ours(e.client.Update(e.ctx, made("4", "made", "yes"), nil), "update cm")
	e.foreignUpdate(made("5", "made", "yes"))
	theirs("update cm")
	assert.Equal(t, "5", data())
	ours(e.client.Upsert(e.ctx, nil, made("6"), nil), "update cm")
	assert.Equal(t, "6", data())

	ours(patch(kates.MergePatchType, `{"metadata":{"labels":{"made":"no"}}}`), "delete cm") // it leaves
	ours(patch(kates.MergePatchType, `{"metadata":{"labels":{"made":"yes"}}}`), "add cm")
	e.foreignUpdate(made("6", "made", "no"))
	theirs("delete cm")
	e.foreignUpdate(made("6", "made", "yes"))
	theirs("add cm")

	ours(e.client.Delete(e.ctx, made(""), nil), "delete cm")
	ours(e.client.Create(e.ctx, made("7", "made", "yes"), nil), "add cm")
	e.foreignDelete(made(""))
	theirs("delete cm")
	ours(e.client.Upsert(e.ctx, nil, made("8", "made", "yes"), nil), "add cm")
	e.foreignDelete(e.host("h", ""))
	theirs("delete h")

	e.listsWhatIsShown(snap)
	unchanged(t, snapshots, snap)
}

// listsWhatIsShown checks that a List has what the snapshot has.
func (e *env) listsWhatIsShown(snap *controlled) {
	e.t.Helper()
	var list []*corev1.ConfigMap
	require.NoError(e.t, e.client.List(e.ctx, kates.Query{Kind: "cm", Namespace: e.ns, LabelSelector: "made=yes"}, &list))
	require.Len(e.t, list, len(snap.ConfigMaps))
	for _, cm := range list {
		assert.Equal(e.t, cm.Data, snap.ConfigMaps[cm.Name].Data)
	}
}

// onePass is a reconciler that needs G4: without it, the reconciler would make everything twice,
// or take it for lost.
func onePass(t *testing.T, e *env) {
	snapshots, snap := e.watchControlled()
	e.foreignCreate(e.host("a", "1"), e.host("b", "2"), e.host("c", "3"))
	await(t, snapshots, snap, "the hosts", func(s *controlled) bool { return len(s.Hosts) == 3 })
	reconcile := func() (writes int) {
		wanted := map[string]bool{}
		for _, h := range snap.Hosts {
			wanted[h.Name] = true
			cm := e.labelled(h.Name, "made", "yes")
			cm.Data = map[string]string{"hostname": h.Spec.Hostname}
			switch made := snap.ConfigMaps[h.Name]; {
			case made == nil:
				// a second Create would be an error
				require.NoError(t, e.client.Create(e.ctx, cm, nil))
			case made.Data["hostname"] != h.Spec.Hostname:
				require.NoError(t, e.client.Update(e.ctx, cm, nil))
			default:
				continue
			}
			writes++
		}
		for name := range snap.ConfigMaps {
			if !wanted[name] {
				require.NoError(t, e.client.Delete(e.ctx, e.configMap(name), nil))
				writes++
			}
		}
		_, err := snapshots.Update(e.ctx, snap)
		require.NoError(t, err)
		return writes
	}
	assert.Equal(t, 3, reconcile())
	assert.Zero(t, reconcile(), "nothing is left to do")
	e.foreignUpdate(e.host("b", "4"))
	e.foreignDelete(e.host("c", ""))
	await(t, snapshots, snap, "the changes", func(s *controlled) bool { return len(s.Hosts) == 2 && s.Hosts[1].Spec.Hostname == "4" })
	assert.Equal(t, 2, reconcile())
	assert.Zero(t, reconcile(), "nothing is left to do")
}

// For the fake, finalizers are plain content and keep nothing.
func finalizersOnFake(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	quota := e.quota("q", "1")
	quota.ObjectMeta = metav1.ObjectMeta{Namespace: e.ns, Name: "q", Finalizers: []string{"example.com/hold"}}
	require.NoError(t, e.client.Create(e.ctx, quota, nil))
	now(t, snapshots, snap)
	assert.Equal(t, quota.Finalizers, shown(t, snap.ResourceQuotas, "q").Finalizers)
	require.NoError(t, e.client.Patch(e.ctx, quota, kates.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil))
	now(t, snapshots, snap)
	assert.Empty(t, shown(t, snap.ResourceQuotas, "q").Finalizers)
	require.NoError(t, e.client.Update(e.ctx, quota, nil))
	now(t, snapshots, snap)
	require.NoError(t, e.client.Delete(e.ctx, quota, nil))
	now(t, snapshots, snap)
	assert.Empty(t, snap.ResourceQuotas)
	e.awaitOnly(snapshots, snap, "marker")
}
