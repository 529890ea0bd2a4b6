package suite

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

var deltaScenarios = []scenario{
	{"G7ChangesBetweenTwoUpdatesAreOneDeltaPerObject", coalesced},
	{"G7DeltasIdentifyTheObject", deltaContent},
	{"G7DeltasReplayedGiveTheNextSnapshotUnderRandomWrites", replayed},
}

func coalesced(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("updated"), e.configMap("deleted"), e.configMap("recreated"), e.configMap("kept"))
	slow, snap := e.watchSelected(kates.Query{})
	other, seen := e.watchSelected(kates.Query{})

	e.foreignCreate(e.configMap("added"))
	e.foreignUpdate(e.configMap("added", "and", "updated"))
	e.foreignCreate(e.configMap("passing"))
	e.foreignDelete(e.configMap("passing"))
	e.foreignUpdate(e.configMap("updated", "n", "1"))
	e.foreignUpdate(e.configMap("updated", "n", "2"))
	e.foreignDelete(e.configMap("deleted"))
	e.foreignDelete(e.configMap("recreated"))
	e.foreignCreate(e.configMap("recreated", "n", "1"))
	e.foreignCreate(e.configMap("z-last"))
	await(t, other, seen, "the last change", func(s *selected) bool { return byName(s.ConfigMaps, "z-last") != nil })

	now(t, slow, snap)
	got := deltaNames(snap.Deltas)
	want := []string{"add added", "update updated", "delete deleted", "add z-last"}
	if e.backend.Real {
		want = append(want, "delete recreated", "add recreated")
		assert.Subset(t, got, want)
		assert.Less(t, indexOf(got, "delete recreated"), indexOf(got, "add recreated"))
	} else {
		want = append(want, "update recreated")
	}
	assert.ElementsMatch(t, want, got)
	unchanged(t, slow, snap)
	assert.Empty(t, snap.Deltas, "deltas are overwritten, also when there are none")
}

func indexOf(list []string, text string) int {
	for i, s := range list {
		if s == text {
			return i
		}
	}
	return -1
}

func deltaContent(t *testing.T, e *env) {
	type snapshot struct {
		Maps   []map[string]any `kates:"hosts.getambassador.io"`
		Deltas []*kates.Delta
	}
	snapshots := watch[snapshot](e, e.client, e.inNamespace("Maps")...)
	var snap snapshot
	awaitFirst(t, snapshots, &snap)
	e.foreignCreate(e.host("a", "a.example"))
	awaitEach(t, snapshots, &snap, "the object", func() bool { return true })
	require.Len(t, snap.Deltas, 1)
	delta := snap.Deltas[0]
	assert.Equal(t, kates.TypeMeta{APIVersion: "getambassador.io/v3alpha1", Kind: "Host"}, delta.TypeMeta)
	assert.Equal(t, e.ns, delta.Namespace)
	assert.Equal(t, "a", delta.Name)
	assert.Equal(t, "Maps", delta.Query)
	metadata := snap.Maps[0]["metadata"].(map[string]any)
	for field, has := range map[string]string{"uid": string(delta.UID), "resourceVersion": delta.ResourceVersion} {
		want, _ := metadata[field].(string) // an object of a fake has neither
		assert.Equal(t, want, has, field)
	}
	text, err := json.Marshal(delta)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"deltaType":"add"`)
	var decoded kates.Delta
	require.NoError(t, json.Unmarshal(text, &decoded))
	assert.Equal(t, kates.ObjectAdd, decoded.DeltaType)
}
