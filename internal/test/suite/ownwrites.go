package suite

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

var ownWriteScenarios = []scenario{
	{"G4EveryWriteIsInTheVeryNextUpdate", everyWrite},
	{"G4UntypedWritesAreInTheVeryNextUpdate", untypedWrites},
	{"G4AWatchThatStartsAfterAWriteShowsIt", watchAfterWrite},
	{"G4AnObservedWriteIsAnOwnWrite", observed},
	{"G6CreateThenDeleteLeavesNothingBehind", createThenDelete},
	{"TheEchoOfAnOwnWriteIsNoChange", echo},
	{"QuietOwnWritesAreInTheContentAndTheDeltas", quietWrites},
	{"AWriteThatFailsChangesNothing", failedWrite},
	{"G4AnOwnWriteHoldsAgainstEarlierEventsOfTheSameObject", earlierEvents},
}

// quotas is a snapshot of typed objects with a status.
type quotas struct {
	ResourceQuotas []*corev1.ResourceQuota
	Deltas         []*kates.Delta
}

func (e *env) watchQuotas() (*kates.Snapshots[quotas], *quotas) {
	e.t.Helper()
	snapshots := watch[quotas](e, e.client, e.inNamespace("ResourceQuotas")...)
	var snap quotas
	awaitFirst(e.t, snapshots, &snap)
	return snapshots, &snap
}

// awaitOnly creates an object as another program and waits for it. No other change may come
// before it.
func (e *env) awaitOnly(snapshots *kates.Snapshots[quotas], snap *quotas, marker string) {
	e.t.Helper()
	e.foreignCreate(e.quota(marker, "1"))
	var deltas []string
	awaitEach(e.t, snapshots, snap, marker, func() bool {
		deltas = append(deltas, deltaNames(snap.Deltas)...)
		return byName(snap.ResourceQuotas, marker) != nil
	})
	assert.Equal(e.t, []string{"add " + marker}, deltas)
}

func everyWrite(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	var quota corev1.ResourceQuota
	shows := func(verb, pods string) {
		t.Helper()
		now(t, snapshots, snap)
		assert.Equal(t, []string{verb + " q"}, deltaNames(snap.Deltas))
		got := byName(snap.ResourceQuotas, "q")
		require.NotNil(t, got)
		assert.Equal(t, pods, got.Spec.Hard.Pods().String())
		unchanged(t, snapshots, snap)
	}
	require.NoError(t, e.client.Create(e.ctx, e.quota("q", "1"), &quota))
	shows("add", "1")

	quota.Spec = e.quota("", "2").Spec
	require.NoError(t, e.client.Update(e.ctx, &quota, &quota))
	shows("update", "2")

	quota.Status.Hard = quota.Spec.Hard
	require.NoError(t, e.client.UpdateStatus(e.ctx, &quota, &quota))
	shows("update", "2")
	assert.Equal(t, "2", shown(t, snap.ResourceQuotas, "q").Status.Hard.Pods().String())

	require.NoError(t, e.client.Patch(e.ctx, &quota, kates.MergePatchType, []byte(`{"spec":{"hard":{"pods":"3"}}}`), nil))
	shows("update", "3")
	require.NoError(t, e.client.Upsert(e.ctx, e.quota("q", "4"), e.quota("q", "4"), nil))
	shows("update", "4")

	require.NoError(t, e.client.Delete(e.ctx, &quota, nil))
	now(t, snapshots, snap)
	assert.Equal(t, []string{"delete q"}, deltaNames(snap.Deltas))
	assert.Empty(t, snap.ResourceQuotas)

	require.NoError(t, e.client.Upsert(e.ctx, e.quota("q", "5"), e.quota("q", "5"), nil))
	shows("add", "5")
	e.awaitOnly(snapshots, snap, "marker")
}

func untypedWrites(t *testing.T, e *env) {
	type snapshot struct {
		Maps []map[string]any `kates:"hosts.getambassador.io"`
	}
	snapshots := watch[snapshot](e, e.client, e.inNamespace("Maps")...)
	var snap snapshot
	awaitFirst(t, snapshots, &snap)
	host := e.host("h", "a.example")
	require.NoError(t, e.client.Create(e.ctx, host, &host))
	now(t, snapshots, &snap)
	require.Len(t, snap.Maps, 1)
	require.NoError(t, e.client.Patch(e.ctx, host, kates.MergePatchType, []byte(`{"spec":{"hostname":"b.example"}}`), &host))
	now(t, snapshots, &snap)
	assert.Equal(t, map[string]any{"hostname": "b.example"}, snap.Maps[0]["spec"])
	host["status"] = map[string]any{"state": "Ready"}
	require.NoError(t, e.client.UpdateStatus(e.ctx, host, nil))
	now(t, snapshots, &snap)
	assert.Equal(t, map[string]any{"state": "Ready"}, snap.Maps[0]["status"])
	require.NoError(t, e.client.Delete(e.ctx, e.host("h", ""), nil))
	now(t, snapshots, &snap)
	assert.Empty(t, snap.Maps)
}

func watchAfterWrite(t *testing.T, e *env) {
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, e.client.Create(e.ctx, e.quota(name, "1"), nil))
		_, snap := e.watchQuotas()
		require.NotNil(t, byName(snap.ResourceQuotas, name), name)
		require.NoError(t, e.client.Delete(e.ctx, e.quota(name, "1"), nil))
		_, snap = e.watchQuotas()
		require.Nil(t, byName(snap.ResourceQuotas, name), name)
	}
}

func observed(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	u := asUnstructured(t, e.quota("q", "1"))
	written, err := e.foreignResource(u).Create(e.ctx, u, metav1.CreateOptions{})
	require.NoError(t, err)
	over, cancel := context.WithCancel(e.ctx)
	cancel()
	require.ErrorIs(t, e.client.Observe(over, written), context.Canceled)
	require.NoError(t, e.client.Observe(e.ctx, written))
	// The watch may be as fast as this call, so only the object's presence is certain.
	_, err = snapshots.Update(e.ctx, snap)
	require.NoError(t, err)
	require.NotNil(t, byName(snap.ResourceQuotas, "q"))
	e.awaitOnly(snapshots, snap, "marker")
	require.Error(t, e.client.Observe(e.ctx, nil))
}

func createThenDelete(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	for range 3 {
		require.NoError(t, e.client.Create(e.ctx, e.quota("q", "1"), nil))
		require.NoError(t, e.client.Delete(e.ctx, e.quota("q", "1"), nil))
		_, err := snapshots.Update(e.ctx, snap)
		require.NoError(t, err)
		assert.Empty(t, snap.ResourceQuotas)
		assert.Empty(t, snap.Deltas)
	}
	e.awaitOnly(snapshots, snap, "marker")
	assert.Equal(t, []string{"marker"}, names(snap.ResourceQuotas))
}

func echo(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	require.NoError(t, e.client.Create(e.ctx, e.quota("q", "1"), nil))
	now(t, snapshots, snap)
	require.NoError(t, e.client.Patch(e.ctx, e.quota("q", "1"), kates.MergePatchType, []byte(`{"spec":{"hard":{"pods":"2"}}}`), nil))
	now(t, snapshots, snap)
	before := shown(t, snap.ResourceQuotas, "q")
	e.awaitOnly(snapshots, snap, "marker")
	assert.Same(t, before, byName(snap.ResourceQuotas, "q"), "the echo replaces nothing")
	require.NoError(t, e.client.Delete(e.ctx, e.quota("q", "1"), nil))
	now(t, snapshots, snap)
	e.awaitOnly(snapshots, snap, "marker-2")
}

func quietWrites(t *testing.T, e *env) {
	quiet := e.client.With(kates.WithQuietOwnWrites())
	snapshots := watch[quotas](e, quiet, e.inNamespace("ResourceQuotas")...)
	var snap quotas
	awaitFirst(t, snapshots, &snap)
	require.NoError(t, quiet.Create(e.ctx, e.quota("q", "1"), nil))
	now(t, snapshots, &snap)
	assert.Equal(t, []string{"add q"}, deltaNames(snap.Deltas))
	e.awaitOnly(snapshots, &snap, "marker")
}

func failedWrite(t *testing.T, e *env) {
	e.foreignCreate(e.quota("q", "1"))
	snapshots, snap := e.watchQuotas()
	require.Error(t, e.client.Create(e.ctx, e.quota("q", "2"), nil))
	require.Error(t, e.client.Update(e.ctx, e.quota("missing", "2"), nil))
	require.Error(t, e.client.Delete(e.ctx, e.quota("missing", "2"), nil))
	unchanged(t, snapshots, snap)
	e.awaitOnly(snapshots, snap, "marker")
}

// earlierEvents writes so fast that each write finds the events of earlier writes still on their
// way.
func earlierEvents(t *testing.T, e *env) {
	snapshots, snap := e.watchQuotas()
	require.NoError(t, e.client.Create(e.ctx, e.quota("q", "1"), nil))
	for _, pods := range []string{"2", "3", "4", "5", "6", "7", "8", "9"} {
		require.NoError(t, e.client.Update(e.ctx, e.quota("q", pods), nil))
		_, err := snapshots.Update(e.ctx, snap)
		require.NoError(t, err)
		require.Equal(t, pods, shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())
	}
	e.awaitOnly(snapshots, snap, "marker")
	assert.Equal(t, "9", shown(t, snap.ResourceQuotas, "q").Spec.Hard.Pods().String())
}
