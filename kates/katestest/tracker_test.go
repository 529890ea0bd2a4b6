package katestest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestG2WritesToTheFakesTrackerAreSomebodyElses(t *testing.T) {
	type snapshot struct {
		ConfigMaps map[string]*corev1.ConfigMap
		Deltas     []*kates.Delta
	}
	fake := katestest.New(t, katestest.WithClientOptions(kates.WithInterval(0)))
	snapshots, err := kates.Watch[snapshot](t.Context(), fake.Client, kates.Query{Name: "ConfigMaps", Namespace: "ns"})
	require.NoError(t, err)
	gvr, tracker := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, fake.Dynamic.Tracker()
	var snap snapshot
	await := func(want string) {
		t.Helper()
		for {
			_, err := snapshots.Update(context.Background(), &snap)
			require.NoError(t, err)
			if len(snap.Deltas) == 1 && snap.Deltas[0].DeltaType.String() == want {
				return
			}
			<-snapshots.Changed()
		}
	}
	<-snapshots.Changed()
	cm := untyped("v1", "ConfigMap", "ns", "x")
	for range 2 { // then the same name once more
		require.NoError(t, tracker.Create(gvr, cm, "ns"))
		await("add")
		changed := cm.DeepCopy()
		changed.Object["data"] = map[string]any{"by": "tracker"}
		require.NoError(t, tracker.Update(gvr, changed, "ns"))
		await("update")
		assert.Equal(t, "tracker", snap.ConfigMaps["x"].Data["by"])
		require.NoError(t, fake.Client.Patch(t.Context(), cm, kates.MergePatchType, []byte(`{"data":{"by":"client"}}`), nil))
		await("update")
		assert.Equal(t, "client", snap.ConfigMaps["x"].Data["by"])
		require.NoError(t, tracker.Delete(gvr, "ns", "x"))
		await("delete")
		assert.Empty(t, snap.ConfigMaps)
	}
}
